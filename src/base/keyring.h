/* base/keyring.h: keys stand where no other process can read them.
 *
 * What a process is started with, its environment and its command line, can be read by every
 * process of the same user for as long as it runs (/proc/PID/environ, /proc/PID/cmdline), and its
 * children inherit the environment.  Programs that a model wrote are such processes.  So the first
 * thing that the program does is ipw_keyring_take(): keys are copied, registered with the redactor
 * (base/secret.h), overwritten where the kernel shows them, and taken out of the environment.
 * From then on their values are had by ipw_keyring_env() alone.
 *
 * A key is the value of a variable with a secret's name (base/secret_name.h).  In the addresses of
 * other variables and of the command line, passwords and secret parameters are overwritten by
 * asterisks.  What an option says to be secret is added as the options are read. */
#ifndef IPW_BASE_KEYRING_H
#define IPW_BASE_KEYRING_H

#include <stddef.h>

/* Returns a copy of argv, to be used in place of it until ipw_keyring_release().  Once, before there are threads. */
char **ipw_keyring_take(int argc, char **argv);
/* A variable that holds a key although its name does not say so. */
void ipw_keyring_take_variable(const char *name);
/* Overwrites on the command line what is `text` in the copy of it.  Other texts are passed over. */
void ipw_keyring_hide(const char *text);
/* As getenv(), the keys included. */
const char *ipw_keyring_env(const char *name);
void ipw_keyring_release(void);

#endif
