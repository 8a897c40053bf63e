#include "run/pacing.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define MOST_PER_S 1e6
#define LONGEST_S  (30 * 86400.0)
#define MOST_SPEED 1e6

/* "recorded" or "recorded:SPEED". */
static int parse_recorded(struct ipw_pacing *out, const char *text, struct ipw_err *err)
{
    static const char recorded[] = "recorded";
    size_t n = sizeof recorded - 1;

    out->recorded = text && strncmp(text, recorded, n) == 0 && (!text[n] || text[n] == ':');
    if (!out->recorded) return 0;
    if (out->rate)
        return ipw_fail(err, IPW_EINVAL, "--arrivals recorded has its own times: leave out --rate");
    if (text[n] && ipw_parse_double(&out->speed, text + n + 1, err)) return err->code;
    if (!(out->speed > 0 && out->speed <= MOST_SPEED))
        return ipw_fail(err, IPW_EINVAL, "--arrivals %.40s: expected recorded:SPEED above zero",
                        text);
    return 0;
}

static int parse_pattern(struct ipw_pacing *out, const char *text, struct ipw_err *err)
{
    static const char poisson[] = "poisson";
    size_t n = sizeof poisson - 1;

    out->poisson = !text || strncmp(text, poisson, n) == 0;
    if (!text || !strcmp(text, poisson) || !strcmp(text, "constant")) return 0;
    if (out->poisson && text[n] == ':' &&
        !ipw_parse_int(&out->seed, text + n + 1, 0, INT64_MAX, NULL))
        return 0;
    return ipw_fail(err, IPW_EINVAL,
                    "--arrivals '%.40s': expected poisson, poisson:SEED, constant or recorded",
                    text);
}

int ipw_pacing_parse(struct ipw_pacing *out, const struct ipw_pacing_options *o,
                     struct ipw_err *err)
{
    int rc;

    *out = (struct ipw_pacing){.rate = o->rate, .speed = o->speed ? o->speed : 1};
    if (o->rate != 0 && !(o->rate >= 1 / LONGEST_S && o->rate <= MOST_PER_S))
        return ipw_fail(err, IPW_EINVAL,
                        "--rate: expected a number of queries per second above 0, such as 0.5");
    rc = parse_recorded(out, o->pattern, err);
    if (rc || out->recorded) return rc;
    rc = parse_pattern(out, o->pattern, err);
    if (!rc && o->pattern && !o->rate)
        rc = ipw_fail(err, IPW_EINVAL, "--arrivals: needs --rate, which it spreads over time");
    out->random = (uint64_t)out->seed;
    return rc;
}

bool ipw_pacing_is_recorded(const struct ipw_pacing_options *o)
{
    struct ipw_pacing p;

    return ipw_pacing_parse(&p, o, NULL) == 0 && p.recorded;
}

/* splitmix64, as a number in (0, 1]. */
static double draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)((z >> 11) + 1) * 0x1p-53;
}

int64_t ipw_pacing_gap_ns(struct ipw_pacing *p)
{
    double gaps = p->poisson ? -log(draw(&p->random)) : 1;

    return ipw_s_to_ns(gaps / p->rate);
}

void ipw_pacing_write(struct ipw_jw *w, const struct ipw_pacing_options *o)
{
    struct ipw_pacing p;

    if (ipw_pacing_parse(&p, o, NULL) || (!p.rate && !p.recorded)) {
        ipw_jw_null(w);
        return;
    }
    ipw_jw_obj(w);
    ipw_jw_kstr(w, "arrivals", p.recorded ? "recorded" : p.poisson ? "poisson" : "constant");
    ipw_jw_knum(w, "per_s", p.recorded ? (double)NAN : p.rate);
    if (p.poisson)
        ipw_jw_kint(w, "seed", p.seed);
    else
        ipw_jw_knull(w, "seed");
    if (p.recorded) ipw_jw_knum(w, "speed", p.speed);
    ipw_jw_obj_end(w);
}
