/* base/keyring.h: keeps keys where no other process can read them.
 *
 * Every process of the same user can read a process's first environment and command line while it
 * runs (/proc/PID/environ, /proc/PID/cmdline).  Its children inherit the environment.  Programs
 * that a model wrote are such processes.  So the program calls ipw_keyring_take() before anything
 * else.  It copies the keys, registers them with the redactor (base/secret.h), overwrites them
 * where the kernel shows them, and removes them from the environment.  From then on only
 * ipw_keyring_env() returns them.
 *
 * A key is the value of a variable with a secret's name (base/secret_name.h), or of a list of
 * headers for OpenTelemetry (OTEL_EXPORTER_OTLP_HEADERS).  In the addresses of
 * other variables and of the command line, asterisks overwrite passwords and secret parameters.
 * The parser of options adds the values that an option marks as secret. */
#ifndef IPW_BASE_KEYRING_H
#define IPW_BASE_KEYRING_H

#include <stddef.h>

/* Returns a copy of argv; use it instead of argv until ipw_keyring_release().  Call it once, before
 * any thread starts. */
char **ipw_keyring_take(int argc, char **argv);
/* Takes a variable that holds a key although its name does not say so. */
void ipw_keyring_take_variable(const char *name);
/* Overwrites a word of the command line, given its copy `text`.  Other texts are ignored. */
void ipw_keyring_hide(const char *text);
/* Like getenv(), but knows the keys as well. */
const char *ipw_keyring_env(const char *name);
/* The environment with the keys again: only for a child that is this program, which takes them at
 * once.  Valid until a variable changes; free() the list. */
char **ipw_keyring_environment(void);
void ipw_keyring_release(void);

#endif
