#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "ledger/power_reader.h"
#include "telemetry/telemetry.h"
#include "trace/power.h"

static void print_row(const struct ipw_power_reader *p, struct ipw_buf *line)
{
    struct ipw_sampler_row row = {
        .source = p->source, .n = p->sources[p->source].n, .t_ns = p->t_ns, .values = p->values};

    ipw_buf_clear(line);
    ipw_power_row_write(line, &row);
    fputs(ipw_buf_str(line), stdout);
}

int ipw_telemetry_read(const char *path, struct ipw_err *err)
{
    struct stat st;
    struct ipw_power_reader p;
    struct ipw_err why;
    struct ipw_buf line = IPW_BUF(IPW_MIB);
    int64_t bad = 0;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    char *file = folder ? ipw_asprintf("%s/power.jsonl", path) : ipw_strdup(path);
    int rc = ipw_power_reader_open_file(&p, file, err);

    free(file);
    if (rc) return rc;
    puts(p.header_text);
    while (!ferror(stdout)) {
        rc = ipw_power_reader_next(&p, &why);
        if (rc == 0) {
            rc = ipw_power_reader_next_segment(&p, &why);
            if (rc == 0) break;
            if (rc > 0) puts(p.header_text);
        } else if (rc > 0) {
            print_row(&p, &line);
        }
        if (rc == IPW_EIO) break;
        if (rc < 0 && bad++ < 5) ipw_log(IPW_LOG_WARN, "%s", why.text);
    }
    ipw_power_reader_close(&p);
    ipw_buf_release(&line);
    if (fflush(stdout) || ferror(stdout))
        return ipw_fail(err, IPW_EIO, "standard output: the rows could not be written");
    if (rc == IPW_EIO) {
        *err = why;
        return rc;
    }
    if (bad)
        return ipw_fail(err, IPW_EPARSE, "%s: %lld line%s could not be read", path, (long long)bad,
                        bad == 1 ? "" : "s");
    return 0;
}
