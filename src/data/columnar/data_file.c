#include "data/columnar/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define HELD_MAX (1024 * IPW_MIB)

int ipw_data_file_open(struct ipw_data_file *file, const char *path, struct ipw_err *err)
{
    struct stat st;
    int fd;

    *file = (struct ipw_data_file){.fd = -1};
    /* Accept only regular files: reading a pipe could block the loop for ever. */
    if (stat(path, &st) != 0) return ipw_fail_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return ipw_fail(err, IPW_EINVAL, "%s: not a regular file", path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ipw_fail_errno(err, errno, "%s", path);
    *file =
        (struct ipw_data_file){.name = ipw_strdup(path), .fd = fd, .size = (uint64_t)st.st_size};
    return 0;
}

void ipw_data_file_memory(struct ipw_data_file *file, const char *name, const void *bytes, size_t n)
{
    *file = (struct ipw_data_file){
        .name = ipw_strdup(name), .fd = -1, .bytes = bytes, .size = (uint64_t)n};
}

void ipw_data_file_close(struct ipw_data_file *file)
{
    if (file->fd >= 0) close(file->fd);
    free(file->name);
    *file = (struct ipw_data_file){.fd = -1};
}

int ipw_data_file_read(const struct ipw_data_file *file, uint64_t offset, void *to, size_t n,
                       struct ipw_err *err)
{
    unsigned char *p = to;

    if (offset > file->size || n > file->size - offset)
        return ipw_fail(err, IPW_EPARSE,
                        "%zu bytes at byte %llu are beyond the file's end (cut off?)", n,
                        (unsigned long long)offset);
    if (file->fd < 0) {
        if (n) memcpy(to, file->bytes + offset, n);
        return 0;
    }
    while (n) {
        ssize_t got = pread(file->fd, p, n, (off_t)offset);

        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ipw_fail_errno(err, errno, "byte %llu", (unsigned long long)offset);
        if (got == 0) return ipw_fail(err, IPW_EIO, "the file became shorter while it was read");
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int ipw_block_resize(struct ipw_block *block, struct ipw_data_file *file, size_t n,
                     struct ipw_err *err)
{
    if (!block->data || n > block->cap || n < block->cap / 8) {
        ipw_block_release(block, file);
        if (n > HELD_MAX || file->held > HELD_MAX - n)
            return ipw_fail(err, IPW_ELIMIT, "%zu bytes are needed at once; 1 GiB is the limit",
                            file->held + n);
        block->data = ipw_malloc(n ? n : 1);
        block->cap = n;
        file->held += n;
    }
    block->n = n;
    return 0;
}

void ipw_block_release(struct ipw_block *block, struct ipw_data_file *file)
{
    file->held -= block->cap;
    free(block->data);
    *block = (struct ipw_block){0};
}
