#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool ipw_use_colour(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");

    if (no && no[0]) return false;
    if (force && force[0] && strcmp(force, "0")) return true;
    return isatty(fd) && term && strcmp(term, "dumb");
}

unsigned ipw_terminal_width(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
