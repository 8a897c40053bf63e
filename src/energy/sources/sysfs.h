/* energy/sources/sysfs.h: numbers and words from kernel text files, and sources made of them.
 *
 * Kernel files are parsed strictly: a file with unexpected content gives no value, never a guess.
 * A *probe* is one channel that is read from one file, or from two files that are multiplied (volts
 * and amperes).  Its descriptors stay open, because a pread is several times cheaper than an open.
 * Reading must not wake a device that sleeps at run time, so a probe may name its
 * power/runtime_status, which is checked first.  ipw_probe_source() turns a list of probes into a
 * source.  Private to this folder. */
#ifndef IPW_ENERGY_SOURCES_SYSFS_H
#define IPW_ENERGY_SOURCES_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "energy/source.h"

/* Strictly one non-negative decimal integer, followed by a newline or nothing; otherwise -1. */
int64_t ipw_sysfs_parse(const char *text, size_t n);
/* The same with an optional '-'; false for another text. */
bool ipw_sysfs_parse_signed(int64_t *out, const char *text, size_t n);
/* Read an open file from its start; IPW_NO_VALUE (or false) on failure. */
int64_t ipw_sysfs_read_fd(int fd);
bool ipw_sysfs_read_signed_fd(int64_t *out, int fd);
/* Identifies the open file.  A file that vanished and came back under its name is another one, with
 * another count. */
struct ipw_sysfs_id {
    dev_t dev;
    ino_t ino;
    bool known;
};
/* Is it another file than before?  Stores which it is. */
bool ipw_sysfs_is_other(struct ipw_sysfs_id *id, int fd);
/* Is the open file's first line exactly this word? */
bool ipw_sysfs_says(int fd, const char *word);

/* Reads the first line of DIR/FILE into out; false if it is empty, too long or cannot be read. */
bool ipw_sysfs_line(char *out, size_t size, const char *dir, const char *file);
/* The non-negative integer in DIR/FILE; -1 if there is none. */
int64_t ipw_sysfs_number(const char *dir, const char *file);
/* The entries of a folder that begin with `prefix`, in natural order (hwmon2 before hwmon10),
 * NULL-terminated; free with ipw_sysfs_free_list().  NULL with errno if the folder cannot be
 * listed. */
char **ipw_sysfs_list(const char *dir, const char *prefix);
void ipw_sysfs_free_list(char **names);

/* Bus ids: "01:00.0", "0000:01:00.0", "00000000:01:00.0" are the same, in upper or lower case. */
#define IPW_PCI_ID_BYTES 32
bool ipw_pci_is_id(const char *text);
bool ipw_pci_same_id(const char *a, const char *b);
bool ipw_pci_canonical(char id[IPW_PCI_ID_BYTES], const char *text); /* as the kernel writes it */
/* Reads the next word of "A, B,C" and moves *list past it.  False if no word is left. */
bool ipw_sysfs_word(char *word, size_t size, const char **list);

struct ipw_probe {
    struct ipw_channel channel;
    char *path[2]; /* the second file is multiplied with the first; NULL: none */
    /* A runtime_status file; NULL: the device never sleeps.  While it says "suspended" a counter
     * stands still and a gauge is 0, without a read of the device.  Any other 0 of a gauge is no
     * value, except for rails. */
    char *status;
    /* The numbered folder of the paths (".../hwmon3"), where the device is found again by its name
     * and its link `device`; NULL: do not check. */
    char *home;
    char *owner; /* the device that was first found there */
    /* The number in the file, or the product, is multiplied and divided by these.  Without a
     * multiplier (1) it is rounded. */
    int64_t multiplier, divisor;
    int fd[2], status_fd;
    int errnum; /* why it could not be opened; 0: it was opened */
    int64_t retry_ns, last;
    bool told_zero;         /* the source's note says so */
    struct ipw_sysfs_id id; /* identity of fd[0] */
};

struct ipw_probe_list {
    struct ipw_probe *items;
    size_t n, cap;
    char all
        [160]; /* the files that a user must be allowed to read, for a message; "": one is named */
};
/* Adds an empty probe with the channel's kind and unit set; copies the paths, which may be NULL. */
struct ipw_probe *ipw_probe_add(struct ipw_probe_list *list, enum ipw_channel_kind kind,
                                const char *path, const char *path2, const char *status,
                                int64_t divisor);
void ipw_probe_release(struct ipw_probe_list *list);

/* Opens the files and makes a source of the list, which it empties in any case.  Repeated names get
 * "#2", "#3".  Of two packages that show the same register, one is in the sum.  If a part of a
 * domain cannot be opened, the domain has no sum.  `what` says what was
 * looked for, and where, for the message if the list is empty (IPW_EUNSUPPORTED).  If no file can
 * be opened: IPW_EPERM with the remedy, or the first file's reason. */
int ipw_probe_source(struct ipw_source **out, const char *name, struct ipw_probe_list *list,
                     int64_t period_ns, const char *what, struct ipw_err *err);

/* A part of a domain cannot be opened: it has no sum, because a partial sum would pass for the
 * whole.  Says so in the source's note: what, why, and the remedy if a permission is missing. */
void ipw_source_no_sum(struct ipw_source *source, struct ipw_channel *channels, size_t n,
                       enum ipw_domain domain, int errnum, const char *what, const char *remedy);
/* Makes the name of channels[i] unique among channels[0..n): appends "#2", "#3", ... */
void ipw_channel_unique(struct ipw_channel *channels, size_t n, size_t i);

#endif
