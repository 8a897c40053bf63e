/* app/prompt.h: reads a line from the user at the terminal.
 *
 * With editing and a history of this session if libedit is built in and stdin is a terminal.
 * Otherwise it reads plain lines without a prompt. */
#ifndef IPW_APP_PROMPT_H
#define IPW_APP_PROMPT_H

/* The line without its line break, for free(); NULL at the end of the input. */
char *ipw_prompt_read(const char *prompt);

#endif
