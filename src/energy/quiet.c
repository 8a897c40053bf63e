#include "energy/quiet.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/jsonl.h"

enum { MAX_BYTES = 16 * IPW_MIB };

static void put_file(struct ipw_jw *w, const char *folder, const char *file)
{
    struct ipw_buf text = IPW_BUF(MAX_BYTES);
    char path[600];

    if (snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path)
        ipw_file_read(&text, path, NULL);
    ipw_jw_str(w, ipw_buf_str(&text));
    ipw_buf_release(&text);
}

static bool is_process(const char *name) { return strspn(name, "0123456789") == strlen(name); }

static void put_process(struct ipw_jw *w, const char *proc, const char *pid)
{
    char folder[512];

    snprintf(folder, sizeof folder, "%.400s/%.20s", proc, pid);
    put_file(w, folder, "stat"); /* "": it ended, or is not visible to us */
}

/* The sockets among the descriptors of a process. */
static void put_sockets(struct ipw_jw *w, const char *proc, const char *pid)
{
    char folder[512], path[600], link[64];
    struct dirent *e;
    DIR *d;

    snprintf(folder, sizeof folder, "%.400s/%.20s/fd", proc, pid);
    d = opendir(folder);
    while (d && (e = readdir(d))) {
        ssize_t n;
        long inode;

        snprintf(path, sizeof path, "%s/%.40s", folder, e->d_name);
        n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = '\0';
        if (sscanf(link, "socket:[%ld]", &inode) != 1) continue;
        ipw_jw_arr(w);
        ipw_jw_int(w, inode);
        ipw_jw_int(w, atol(pid));
        ipw_jw_arr_end(w);
    }
    if (d) closedir(d);
}

static void put_each(struct ipw_jw *w, const char *key, const char *proc,
                     void (*put)(struct ipw_jw *w, const char *proc, const char *pid))
{
    DIR *d = opendir(proc);
    struct dirent *e;

    ipw_jw_key(w, key);
    ipw_jw_arr(w);
    while (d && (e = readdir(d)))
        if (is_process(e->d_name)) put(w, proc, e->d_name);
    ipw_jw_arr_end(w);
    if (d) closedir(d);
}

void ipw_quiet_look(struct ipw_jw *w, const char *proc, bool sockets)
{
    if (!proc) proc = "/proc";
    ipw_jw_obj(w);
    put_each(w, "processes", proc, put_process);
    if (sockets) put_each(w, "sockets", proc, put_sockets);
    ipw_jw_key(w, "stat");
    put_file(w, proc, "stat");
    for (int k = 0; k < 2 && sockets; k++) {
        ipw_jw_key(w, k ? "tcp6" : "tcp");
        put_file(w, proc, k ? "net/tcp6" : "net/tcp");
    }
    ipw_jw_obj_end(w);
}
