#include "proxy/measured_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/keyring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "data/sha256.h"
#include "json/write.h"
#include "script/table_text.h"

static struct ipw_measured_run *of(struct ipw_origin *origin)
{
    return (struct ipw_measured_run *)origin;
}

static int check(struct ipw_origin *origin, const struct ipw_run_options *o, struct ipw_err *err)
{
    (void)origin, (void)o, (void)err;
    return 0; /* the command has checked its options */
}

static int open_tasks(struct ipw_origin *origin, struct ipw_dataset **out,
                      const struct ipw_run_options *o, struct ipw_err *err)
{
    (void)origin, (void)o, (void)err;
    *out = ipw_dataset_given("measure", NULL, NULL, "a measured program: nothing is scored", 1);
    return 0;
}

/* Of the program's words. */
static void selection(struct ipw_origin *origin, char *out, const struct ipw_dataset *cases)
{
    const char *const *words = of(origin)->o->argv;
    struct ipw_buf text = IPW_BUF(16 * IPW_MIB);

    (void)cases;
    for (; words && *words; words++) ipw_buf_addf(&text, "%s\n", *words);
    ipw_sha256_hex(out, ipw_buf_str(&text), text.len);
    ipw_buf_release(&text);
}

/* ---- the servers ---- */

static const char *env_or_null(const char *name)
{
    const char *value = ipw_keyring_env(name);

    return value && *value ? value : NULL;
}

/* The host is one of the domain's: "https://api.openai.com/v1", "openai.com". */
static bool is_of(const char *url, const char *domain)
{
    const char *host = strstr(url, "://") + 3;
    size_t n = strcspn(host, "/?#:@"), m = strlen(domain);

    if (memchr(host, '@', strcspn(host, "/?#")) || n < m) return false;
    return memcmp(host + n - m, domain, m) == 0 && (n == m || host[n - m - 1] == '.');
}

/* The variable with the key that a server gets; NULL: none.  The user's own row for its MATCH
 * decides.  Else the key of an API goes to the servers of its owner, to a server of that API's
 * path, and (OPENAI_API_KEY) to the server of all calls. */
static const char *variable_for(const struct ipw_measured_run *m, const char *text, bool messages)
{
    const char *general = m->o->run.server.api_key_env, *scheme = strstr(text, "://");
    const char *equals = strchr(text, '=');
    bool match = scheme && equals && equals < scheme;

    for (size_t i = 0; i < m->o->keys.n && match; i++) {
        const char *row = m->o->keys.items[i], *at = strrchr(row, '=');

        if (at - row == equals - text && strncmp(row, text, (size_t)(at - row)) == 0) return at + 1;
    }
    if (messages && (env_or_null("ANTHROPIC_API_KEY") || !general)) return "ANTHROPIC_API_KEY";
    if (general) return general;
    return !match || is_of(equals + 1, "openai.com") ? "OPENAI_API_KEY" : NULL;
}

static int check_keys(const struct ipw_measured_run *m, struct ipw_err *err)
{
    for (size_t i = 0; i < m->o->keys.n; i++) {
        const char *row = m->o->keys.items[i], *at = strrchr(row, '=');
        size_t n = (size_t)(at - row) + 1, k = 0;

        while (k < m->o->upstreams.n && strncmp(m->o->upstreams.items[k], row, n)) k++;
        if (k == m->o->upstreams.n)
            return ipw_fail(err, IPW_EINVAL, "--api-key-env '%.80s': no --upstream has this MATCH",
                            row);
        if (!env_or_null(at + 1))
            return ipw_fail(err, IPW_EINVAL, "--api-key-env '%.80s': that variable is not set",
                            row);
    }
    return 0;
}

static int add_upstream(struct ipw_measured_run *m, const char *text, struct ipw_err *err)
{
    bool url = strstr(text, "://") != NULL; /* else it is refused below */
    bool messages =
        strncmp(text, "/v1/messages=", 13) == 0 || (url && is_of(text, "anthropic.com"));
    const char *variable = variable_for(m, text, messages);
    const char *key = variable ? env_or_null(variable) : NULL;

    if (key)
        ipw_log(IPW_LOG_INFO, "--upstream %s gets the key of %s", text, variable);
    else if (!variable && !m->run.quiet && env_or_null("OPENAI_API_KEY"))
        ipw_say("--upstream %s gets no key; --api-key-env MATCH=VAR names one", text);
    return ipw_upstreams_add(&m->proxy.ground.upstreams, text, key, messages, err);
}

static int add_upstreams(struct ipw_measured_run *m, struct ipw_err *err)
{
    struct ipw_upstreams *all = &m->proxy.ground.upstreams;
    const struct ipw_opt_list *named = &m->o->upstreams;
    const char *other_url = env_or_null("ANTHROPIC_BASE_URL");
    int rc = check_keys(m, err);

    for (size_t i = 0; i < named->n && !rc; i++) rc = add_upstream(m, named->items[i], err);
    if (!rc && !named->n) rc = ipw_upstreams_add(all, m->run.base_url, m->run.key, false, err);
    if (!rc && !named->n && other_url)
        rc = ipw_upstreams_add(all, other_url, env_or_null("ANTHROPIC_API_KEY"), true, err);
    return rc;
}

static int read_rules(struct ipw_json **out, struct ipw_err *err)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);
    int rc = ipw_table_text(&text, "lua/ipw/sessions.lua", err);

    if (!rc) rc = ipw_json_parse(out, ipw_buf_str(&text), text.len, NULL, err);
    ipw_buf_release(&text);
    return rc;
}

static void on_session(void *ud)
{
    struct ipw_measured_run *m = ud;

    if (m->waiting) m->run.wake(m->run.ud);
}

/* A loop without anything to do ends, and a listening socket does not count. */
static void keep_waiting(void *ud)
{
    struct ipw_measured_run *m = ud;

    m->waiting = ipw_timer_start(m->run.loop, 3600 * IPW_NS_PER_S, keep_waiting, m);
}

static int connected(struct ipw_origin *origin, const struct ipw_origin_run *run,
                     struct ipw_err *err)
{
    struct ipw_measured_run *m = of(origin);
    const struct ipw_net_options *net = &m->o->run.server.net;
    const struct ipw_proxy_options options = {.loop = run->loop,
                                              .host = m->o->host,
                                              .port = (int)m->o->port,
                                              .model = run->model,
                                              .idle_ns = m->o->idle_ns,
                                              .connect_ns = net->connect_ns,
                                              .cacert = net->cacert,
                                              .on_session = on_session,
                                              .ud = m};
    int rc;

    m->run = *run;
    rc = ipw_proxy_open(&m->proxy, &options, err);
    if (!rc) rc = read_rules(&m->proxy.rules, err);
    if (!rc) rc = add_upstreams(m, err);
    return rc;
}

static void say_address(const struct ipw_measured_run *m)
{
    ipw_say("calls are measured at these addresses, with the key %s, until Ctrl-C:", m->proxy.word);
    ipw_say("  OPENAI_BASE_URL=%s/v1", m->proxy.url);
    ipw_say("  ANTHROPIC_BASE_URL=%s", m->proxy.url);
}

/* ---- queries ---- */

struct seat {
    struct ipw_case c;
    struct ipw_proxy_session *session;
};

static bool due(struct ipw_origin *origin)
{
    struct ipw_measured_run *m = of(origin);

    if (m->o->argv) return true;
    if (!m->waiting) { /* the run has begun */
        keep_waiting(m);
        say_address(m);
    }
    for (const struct ipw_proxy_session *s = m->proxy.sessions; s; s = s->next)
        if (!s->taken) return true;
    return false;
}

static char *joined(const char *const *words, const char *first)
{
    struct ipw_buf text = IPW_BUF(IPW_MIB);

    if (first) ipw_buf_adds(&text, first);
    for (; words && *words; words++) ipw_buf_addf(&text, "%s%s", text.len ? " " : "", *words);
    return ipw_buf_take(&text, NULL);
}

/* How the query was told from others. */
static char *metadata(const struct ipw_proxy_session *s)
{
    struct ipw_buf text = IPW_BUF(64 * IPW_KIB);
    struct ipw_jw w;

    ipw_jw_init(&w, &text);
    ipw_jw_obj(&w);
    if (strcmp(s->rule, "path")) ipw_jw_kstr(&w, "session", s->key);
    ipw_jw_kstr(&w, "session_rule", s->rule);
    ipw_jw_obj_end(&w);
    return ipw_buf_take(&text, NULL);
}

static void seat(struct ipw_origin *origin, struct ipw_seat *out, struct ipw_place *place,
                 int64_t start_ns)
{
    struct ipw_measured_run *m = of(origin);
    struct seat *taken = ipw_calloc(1, sizeof *taken);
    struct ipw_proxy_session *s =
        m->o->argv ? ipw_proxy_new_session(&m->proxy) : ipw_proxy_take_waiting(&m->proxy);

    (void)start_ns, (void)place;
    taken->session = s;
    s->face.argv = m->o->argv;
    s->face.named = m->o->named;
    s->face.exit_scores = m->o->exit_scores;
    s->face.exit_code = -1;
    taken->c = (struct ipw_case){
        .id = ipw_strdup(m->o->argv && m->o->run.data.epochs > 1 ? "q0000" : s->id),
        .prompt = m->o->argv ? joined(m->o->argv, NULL) : ipw_asprintf("session %s", s->key),
        .metadata = metadata(s),
        .number = 1};
    *out = (struct ipw_seat){.c = &taken->c, .session = &s->face};
}

static void unseat(struct ipw_origin *origin, struct ipw_seat *given)
{
    struct ipw_measured_run *m = of(origin);
    struct seat *taken = (struct seat *)(void *)(uintptr_t)given->c;

    if (taken->session->face.exit_code > 0) m->exit_code = taken->session->face.exit_code;
    ipw_proxy_end_session(&m->proxy, taken->session);
    free(taken->c.id);
    free(taken->c.prompt);
    free(taken->c.metadata);
    free(taken);
}

/* Programs get the signal and decide; sessions end when they are quiet. */
static bool close_(struct ipw_origin *origin, int signum)
{
    struct ipw_measured_run *m = of(origin);

    (void)signum;
    ipw_proxy_finish_sessions(&m->proxy);
    return true;
}

static void over(struct ipw_origin *origin)
{
    struct ipw_measured_run *m = of(origin);

    ipw_timer_cancel(m->waiting);
    m->waiting = NULL;
    ipw_proxy_close(&m->proxy);
}

int ipw_measure(struct ipw_measure_options *o, const char *agent, char *command,
                struct ipw_follower *follower, struct ipw_run_end *end)
{
    struct ipw_measured_run m = {.origin = {.endless = !o->argv,
                                            .check = check,
                                            .open = open_tasks,
                                            .selection = selection,
                                            .connected = connected,
                                            .due = due,
                                            .seat = seat,
                                            .unseat = unseat,
                                            .close = close_,
                                            .over = over},
                                 .o = o};
    int code;

    o->run.agent.kind = "programs";
    o->run.server.any_model = true;
    if (!o->argv) o->run.concurrency = 100000; /* no limit, as lua/ipw/report/headline.lua has it */
    code = ipw_run_start(&o->run, agent, command, &m.origin, follower, end);
    ipw_proxy_release(&m.proxy);
    return code == IPW_EXIT_OK || code == IPW_EXIT_FAILED ? (m.exit_code ? m.exit_code : code)
                                                          : code;
}
