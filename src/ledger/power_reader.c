#include "ledger/power_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "json/json.h"
#include "json/jsonl.h"
#include "trace/power.h"

enum { MAX_CHANNELS = 4096 };

static int read_channel(struct ipw_power_reader *p, const struct ipw_json *node, const char *where,
                        struct ipw_err *err)
{
    struct ipw_channel c;
    int rc = ipw_channel_read(&c, node, where, err);

    if (rc) return rc;
    if (p->n_channels == MAX_CHANNELS)
        return ipw_fail(err, IPW_ELIMIT, "%s: more than %d channels", where, MAX_CHANNELS);
    IPW_GROW(p->channels, p->cap_channels, p->n_channels + 1);
    p->channels[p->n_channels++] = c;
    return 0;
}

static int read_header(struct ipw_power_reader *p, const struct ipw_json *doc, struct ipw_err *err)
{
    int64_t format = ipw_json_int(ipw_json_get(doc, "format"), 1);
    const struct ipw_json *sources;

    if (format != IPW_POWER_FORMAT)
        return ipw_fail(err, IPW_EUNSUPPORTED,
                        "rows of format %lld%s: this program reads format %d", (long long)format,
                        format == 2 ? " (packed)" : "", IPW_POWER_FORMAT);
    if (ipw_json_need_arr(&sources, doc, "sources", "", err) < 0) return IPW_EPARSE;
    for (const struct ipw_json *s = ipw_json_first(sources); s; s = ipw_json_next(s)) {
        const struct ipw_json *channels = ipw_json_get(s, "channels");
        struct ipw_power_source source = {.first = p->n_channels, .newest_ns = INT64_MIN};
        char where[64];
        int rc = 0;

        snprintf(source.name, sizeof source.name, "%s", ipw_json_str(ipw_json_get(s, "name"), ""));
        for (const struct ipw_json *c = ipw_json_first(channels); c && !rc; c = ipw_json_next(c)) {
            snprintf(where, sizeof where, "sources[%zu].channels[%zu]", p->n_sources,
                     p->n_channels - source.first);
            rc = read_channel(p, c, where, err);
        }
        if (rc) return rc;
        source.n = p->n_channels - source.first;
        IPW_GROW(p->sources, p->cap_sources, p->n_sources + 1);
        p->sources[p->n_sources++] = source;
    }
    p->values = ipw_calloc(p->n_channels + 1, sizeof *p->values);
    return 0;
}

static int segment_of(const struct ipw_json *header)
{
    int64_t segment = ipw_json_int(ipw_json_get(header, "segment"), 0);

    return segment < 0 || segment > 1000000 ? 0 : (int)segment;
}

static void forget_channels(struct ipw_power_reader *p)
{
    free(p->channels);
    free(p->sources);
    free(p->values);
    p->channels = NULL;
    p->sources = NULL;
    p->values = NULL;
    p->n_channels = p->cap_channels = p->n_sources = p->cap_sources = 0;
    p->rows = 0;
}

/* Keeps a header that was read until the caller asks for its session. */
static int keep_header(struct ipw_power_reader *p, const struct ipw_jsonl_line *line,
                       struct ipw_err *err)
{
    int rc = ipw_json_parse(&p->header, line->text, line->n, NULL, err);

    p->header_line = line->number;
    if (rc) {
        p->header = NULL;
        forget_channels(p); /* rows that follow belong to other channels */
        return ipw_err_prefix(err, "%s:%lld", p->path, (long long)line->number);
    }
    free(p->header_text);
    p->header_text = ipw_strdup(line->text);
    return 0;
}

static int enter_segment(struct ipw_power_reader *p, struct ipw_err *err)
{
    int rc;

    forget_channels(p);
    p->segment = segment_of(p->header);
    rc = read_header(p, p->header, err);
    if (rc) forget_channels(p);
    ipw_json_free(p->header);
    p->header = NULL;
    return rc ? ipw_err_prefix(err, "%s:%lld", p->path, (long long)p->header_line) : 0;
}

int ipw_power_reader_segment(struct ipw_power_reader *p, int segment, struct ipw_err *err)
{
    int rc = 0;

    if (segment == p->segment) return 0;
    while (p->reader && (!p->header || segment_of(p->header) < segment)) {
        struct ipw_jsonl_line line;

        ipw_json_free(p->header);
        p->header = NULL;
        rc = ipw_jsonl_next(p->reader, &line, err);
        if (rc <= 0 || line.torn) break;
        if (line.text[0] == '{') rc = keep_header(p, &line, err);
        if (rc < 0) break;
    }
    if (rc < 0) return rc;
    if (p->header && segment_of(p->header) == segment) return enter_segment(p, err);
    forget_channels(p);
    p->segment = segment;
    return 0;
}

int ipw_power_reader_next_segment(struct ipw_power_reader *p, struct ipw_err *err)
{
    int rc;

    if (!p->header) return 0;
    rc = enter_segment(p, err);
    return rc < 0 ? rc : 1;
}

/* Without a header there are no rows: the run was killed before it wrote one. */
static int open_reader(struct ipw_power_reader *p, struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&p->reader, p->path, IPW_LINE_MAX, err);

    if (!rc) rc = ipw_jsonl_next(p->reader, &line, err);
    if (rc > 0 && !line.torn) return keep_header(p, &line, err);
    return rc < 0 ? rc : 0;
}

int ipw_power_reader_has_header(const char *path, bool *torn, struct ipw_err *err)
{
    struct ipw_jsonl_reader *reader;
    struct ipw_jsonl_line line;
    int rc = ipw_jsonl_open(&reader, path, IPW_LINE_MAX, err);

    *torn = false;
    if (rc) return rc;
    rc = ipw_jsonl_next(reader, &line, err);
    *torn = rc > 0 && line.torn;
    ipw_jsonl_close(reader);
    return *torn ? 0 : rc;
}

int ipw_power_reader_open_file(struct ipw_power_reader *p, const char *path, struct ipw_err *err)
{
    int rc;

    *p = (struct ipw_power_reader){.segment = -1, .path = ipw_strdup(path)};
    rc = open_reader(p, err);
    if (!rc && !p->header) rc = ipw_fail(err, IPW_EPARSE, "%s: no header", p->path);
    if (!rc) rc = enter_segment(p, err);
    if (rc) ipw_power_reader_close(p);
    return rc;
}

int ipw_power_reader_open(struct ipw_power_reader *p, const char *run, struct ipw_err *err)
{
    int rc;

    *p = (struct ipw_power_reader){.segment = -1, .path = ipw_asprintf("%s/power.jsonl", run)};
    if (access(p->path, F_OK) < 0 && errno == ENOENT) return 0;
    rc = open_reader(p, err);
    if (!rc) rc = ipw_power_reader_segment(p, 0, err);
    if (rc) ipw_power_reader_close(p);
    return rc;
}

static int in_order(struct ipw_power_reader *p, struct ipw_err *err)
{
    struct ipw_power_source *s = &p->sources[p->source];
    int64_t before_ns = s->newest_ns;

    if (p->t_ns <= before_ns)
        return ipw_fail(err, IPW_EPARSE,
                        "%s:%lld: t_ns goes back: %lld after %lld of the same source", p->path,
                        (long long)p->line, (long long)p->t_ns, (long long)before_ns);
    s->newest_ns = p->t_ns;
    p->rows++;
    return 1;
}

int ipw_power_reader_next(struct ipw_power_reader *p, struct ipw_err *err)
{
    struct ipw_jsonl_line line;
    struct ipw_sampler_row row;
    int rc;

    if (!p->reader || p->header) return 0;
    rc = ipw_jsonl_next(p->reader, &line, err);
    if (rc <= 0 || line.torn) return rc < 0 ? rc : 0;
    p->line = line.number;
    if (line.text[0] == '{') return keep_header(p, &line, err);
    if (ipw_power_row_read(line.text, &row, p->values, p->n_channels) &&
        row.source < p->n_sources && row.n == p->sources[row.source].n) {
        p->t_ns = row.t_ns;
        p->source = row.source;
        return in_order(p, err);
    }
    return ipw_fail(err, IPW_EPARSE, "%s:%lld: not a row of the channels in its header", p->path,
                    (long long)line.number);
}

void ipw_power_reader_close(struct ipw_power_reader *p)
{
    if (p->reader) ipw_jsonl_close(p->reader);
    ipw_json_free(p->header);
    free(p->header_text);
    forget_channels(p);
    free(p->path);
    *p = (struct ipw_power_reader){0};
}
