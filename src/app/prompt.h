/* app/prompt.h: a line from the person at the terminal.
 *
 * With editing and a history of this session where libedit is built in and stdin is a terminal;
 * plain lines otherwise, and then without a prompt. */
#ifndef IPW_APP_PROMPT_H
#define IPW_APP_PROMPT_H

/* Without its line break, for free(); NULL at the end of the input. */
char *ipw_prompt_read(const char *prompt);

#endif
