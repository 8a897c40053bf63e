/* The damaged end of a file: what is cut off and what stays are the file, byte for byte; what stays
 * can be appended to, and there is nothing more to cut.  The reader gives whole lines, in order, at
 * the offsets that it says. */
#include "check.h"
#include "json/json.h"
#include "json/jsonl.h"

static char folder[64], file[128], torn[160];

static void leave(void)
{
    empty_folder(folder, NULL);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    make_folder(folder, sizeof folder, "tail");
    snprintf(file, sizeof file, "%s/x.jsonl", folder);
    snprintf(torn, sizeof torn, "%s.torn", file);
    atexit(leave);
    return 0;
}

static void check_lines(const char *bytes, size_t size)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    struct ipw_err err = {0};
    int64_t number = 0, offset = -1;
    int rc;

    check(ipw_jsonl_open(&reader, file, IPW_MIB, &err) == 0, "the file cannot be opened");
    while ((rc = ipw_jsonl_next(reader, &line, &err)) > 0) {
        check(line.number > number && line.offset > offset, "lines do not count upwards");
        check((size_t)line.offset + line.n <= size &&
                  !memcmp(bytes + line.offset, line.text, line.n),
              "another line than the file's");
        check(!memchr(line.text, '\n', line.n) && !line.text[line.n], "more than a line");
        number = line.number;
        offset = line.offset;
    }
    if (rc) check_error(&err, rc);
    ipw_jsonl_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_buf kept = IPW_BUF(16 * IPW_MIB), cut_off = IPW_BUF(16 * IPW_MIB),
                   after = IPW_BUF(17 * IPW_MIB);
    struct ipw_jsonl_appender *appender;
    struct ipw_jsonl_cut cut;
    struct ipw_err err = {0};

    empty_folder(folder, NULL);
    put_bytes(file, data, size);
    check_lines((const char *)data, size);
    if (ipw_jsonl_cut_tail(&cut, file, &err)) IPW_BUG("%s", err.text);
    if (ipw_file_read(&kept, file, &err)) IPW_BUG("%s", err.text);
    if (cut.bytes && ipw_file_read(&cut_off, torn, &err)) IPW_BUG("%s", err.text);
    check(kept.len == (size_t)cut.offset || !cut.bytes, "cut elsewhere than it says");
    check(kept.len + cut_off.len >= size && kept.len <= size, "bytes are lost");
    check(!kept.len || !memcmp(kept.data, data, kept.len), "what stays has changed");
    check(!cut.bytes || memmem(cut_off.data, cut_off.len, data + kept.len, size - kept.len),
          "what was cut off is not kept");
    check(!kept.len || kept.data[kept.len - 1] == '\n', "half a line stays");
    if (ipw_jsonl_cut_tail(&cut, file, &err)) IPW_BUG("%s", err.text);
    check(cut.bytes == 0, "cut twice");
    if (ipw_jsonl_append_open(&appender, file, false, &err)) IPW_BUG("%s", err.text);
    if (ipw_jsonl_append(appender, "{}\n", 3, &err)) IPW_BUG("%s", err.text);
    if (ipw_jsonl_append_close(appender, &err)) IPW_BUG("%s", err.text);
    if (ipw_file_read(&after, file, &err)) IPW_BUG("%s", err.text);
    check(after.len == kept.len + 3 && !memcmp(after.data + kept.len, "{}\n", 3),
          "appended elsewhere");
    ipw_buf_release(&after);
    ipw_buf_release(&kept);
    ipw_buf_release(&cut_off);
    return 0;
}
