/* energy/sources/sysfs.h: numbers and words out of kernel text files, and sources made of them.
 *
 * What the kernel shows is parsed strictly: a file that holds anything but what it should gives no
 * value, never a guess.  A *probe* is one channel that is read from one file, or from two that are
 * multiplied (volts and amperes), through descriptors that are kept open (a pread is several times
 * cheaper than an open).  A device that sleeps at run time is not woken by reading it: a probe may
 * name its power/runtime_status, which is looked at first.  ipw_probe_source() turns a list of
 * probes into a source.  For the files of this folder only. */
#ifndef IPW_ENERGY_SOURCES_SYSFS_H
#define IPW_ENERGY_SOURCES_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "energy/source.h"

/* Strictly one non-negative decimal integer, a newline or nothing after it; -1 otherwise. */
int64_t ipw_sysfs_parse(const char *text, size_t n);
/* The same with a '-' allowed before it; false when it is no such number. */
bool ipw_sysfs_parse_signed(int64_t *out, const char *text, size_t n);
/* Read from an open file, from its start; IPW_NO_VALUE (or false) when that fails. */
int64_t ipw_sysfs_read_fd(int fd);
bool ipw_sysfs_read_signed_fd(int64_t *out, int fd);
/* Which file is open: one that went away and came back under its name is another, and so is what it
 * counts. */
struct ipw_sysfs_id {
    dev_t dev;
    ino_t ino;
    bool known;
};
/* Is it another than the one before?  Notes which it is. */
bool ipw_sysfs_is_other(struct ipw_sysfs_id *id, int fd);
/* Does the open file's first line say exactly this word? */
bool ipw_sysfs_says(int fd, const char *word);

/* The first line of DIR/FILE into out; false when it is empty, too long or cannot be read. */
bool ipw_sysfs_line(char *out, size_t size, const char *dir, const char *file);
/* The non-negative integer in DIR/FILE; -1 when there is none. */
int64_t ipw_sysfs_number(const char *dir, const char *file);
/* The entries of a folder that begin with `prefix`, in natural order (hwmon2 before hwmon10);
 * NULL-terminated, freed with ipw_sysfs_free_list().  NULL with errno when it cannot be listed. */
char **ipw_sysfs_list(const char *dir, const char *prefix);
void ipw_sysfs_free_list(char **names);

/* Bus ids: "01:00.0", "0000:01:00.0", "00000000:01:00.0" are one, letters of either case. */
#define IPW_PCI_ID_BYTES 32
bool ipw_pci_is_id(const char *text);
bool ipw_pci_same_id(const char *a, const char *b);
bool ipw_pci_canonical(char id[IPW_PCI_ID_BYTES], const char *text); /* as the kernel writes it */
/* The next word of "A, B,C"; *list is moved behind it.  False when there is none left. */
bool ipw_sysfs_word(char *word, size_t size, const char **list);

struct ipw_probe {
    struct ipw_channel channel;
    char *path[2]; /* the second is multiplied with the first; NULL: there is none */
    char *status;  /* a runtime_status: while it says "suspended" a counter stands still and a
                        gauge is 0, without a look at the device; NULL: it does not sleep.  Any
                        other 0 of a gauge is no value, rails excepted */
    char *home;    /* the numbered folder that the paths lie in (".../hwmon3"): where the device is
                        looked for again under its name and its link `device`; NULL: any will do */
    char *owner;   /* who was behind it at first */
    int64_t divisor; /* the number in the file, or the product, divided by this and rounded */
    int fd[2], status_fd;
    int errnum; /* why it could not be opened; 0: it could */
    int64_t retry_ns, last;
    bool told_zero;         /* in the source's note */
    struct ipw_sysfs_id id; /* of fd[0] */
};

struct ipw_probe_list {
    struct ipw_probe *items;
    size_t n, cap;
};
/* Adds an empty probe with the channel's kind and unit set; paths are copied, NULL is allowed. */
struct ipw_probe *ipw_probe_add(struct ipw_probe_list *list, enum ipw_channel_kind kind,
                                const char *path, const char *path2, const char *status,
                                int64_t divisor);
void ipw_probe_release(struct ipw_probe_list *list);

/* Opens the files and makes a source of the list, which it empties in any case.  Names that were
 * given twice get "#2", "#3".  A domain of which a part cannot be opened has no sum.  `what` says
 * what was looked for where, for the message when the list is empty (IPW_EUNSUPPORTED); when no
 * file can be opened: IPW_EPERM with the remedy, or the first one's reason. */
int ipw_probe_source(struct ipw_source **out, const char *name, struct ipw_probe_list *list,
                     int64_t period_ns, const char *what, struct ipw_err *err);

/* Makes the names of channels[0..n) unique, by "#2", "#3" behind the later ones. */
void ipw_channel_unique(struct ipw_channel *channels, size_t n, size_t i);

#endif
