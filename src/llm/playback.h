/* llm/playback.h: a record in place of the world, for one query.
 *
 * The agent runs again; what it asks of a model, a tool or a clock is answered from the lines of
 * the record, in the order in which they stand there, and what it does must be what the record says
 * it did, byte for byte: each event that the query emits is paired with the next line of the
 * record, given that line's times, and compared with it.  The first that differs is a divergence.
 *
 * ipw_playback_llm() is the back end behind ipw_llm_start(); tools and effects
 * (script/recorded_effect.h) are answered through ipw_playback_wait() and ipw_playback_effect().
 * Someone drives it: ipw_playback_step() looks at the query's next line.  Replies, results and
 * effects are handed over there, never inside the call that asks for them.
 *
 * IPW_PLAYBACK_DECISIONS: only the model's replies are taken from the record, in their order,
 * whatever the requests say; everything else is real, and what tools give is compared and counted.
 *
 * With `servers` a query that diverges goes on against them. */
#ifndef IPW_LLM_PLAYBACK_H
#define IPW_LLM_PLAYBACK_H

#include "llm/client.h"
#include "trace/event_reader.h"

enum ipw_playback_mode { IPW_PLAYBACK_EXACT, IPW_PLAYBACK_DECISIONS };

struct ipw_playback_options {
    enum ipw_playback_mode mode;
    struct ipw_event_reader *events;
    int32_t query;
    size_t reach; /* how many lines ahead its own may stand */
    struct ipw_loop *loop;
    const char *over; /* JSON object whose members win in every request, or NULL */
    bool use_max_completion_tokens;
    int64_t force_tokens;    /* > 0: as the limit of every reply */
    struct ipw_llm *servers; /* go on with these after a divergence; NULL: end there */
    const char *live_model;  /* the model to ask there, or NULL */

    /* An event is settled: goes into the new record.  `line`: its counterpart, or NULL. */
    void (*write)(void *ud, struct ipw_event *event, const struct ipw_event_line *line);
    void (*stir)(void *ud);                       /* the agent did something: look again */
    void (*diverged)(void *ud, const char *text); /* once; `text` may have several lines */
    /* A tool's result beside the recorded one (NULL: the record has none); DECISIONS only. */
    void (*tool)(void *ud, const struct ipw_event *event, const struct ipw_event_line *was);
    void *ud;
};

struct ipw_playback;

struct ipw_playback *ipw_playback_new(const struct ipw_playback_options *options);
void ipw_playback_free(struct ipw_playback *replay); /* after the agent; NULL is fine */
struct ipw_llm *ipw_playback_llm(struct ipw_playback *replay);

/* Every event that the query emits. */
void ipw_playback_emit(struct ipw_playback *replay, const struct ipw_event *event);

enum ipw_playback_step {
    IPW_PLAYBACK_TAKEN,   /* the line is done with: drop it */
    IPW_PLAYBACK_PENDING, /* the agent has to do something first */
};
/* `line`: the query's next.  May end the agent, and with it this object's work. */
enum ipw_playback_step ipw_playback_step(struct ipw_playback *replay,
                                         const struct ipw_event_line *line);
/* The agent waits for the record and the record, at `line` (NULL: its end), for something else. */
void ipw_playback_stalled(struct ipw_playback *replay, const struct ipw_event_line *line);
/* The agent is over where the record goes on with `line`. */
void ipw_playback_ended(struct ipw_playback *replay, const struct ipw_event_line *line,
                        const char *outcome);
void ipw_playback_diverge(struct ipw_playback *replay, const char *fmt, ...) IPW_PRINTF(2, 3);
/* After a divergence, not inside a callback of it: what was open is asked of the world instead. */
void ipw_playback_go_live(struct ipw_playback *replay);
int ipw_playback_turns(const struct ipw_playback *replay);

/* ---- for the library functions ---- */

/* Do clocks, files and children answer from the record now?  NULL: no. */
bool ipw_playback_answers(const struct ipw_playback *replay);
/* `line` NULL: the record does not answer (the query goes on without it): do it really. */
typedef void (*ipw_playback_fn)(void *ud, const struct ipw_event_line *line);
/* Waits for the end of tool call or web request `id` (its span), or for the effect numbered
 * `id`. */
enum ipw_playback_awaited { IPW_PLAYBACK_TOOL, IPW_PLAYBACK_WEB, IPW_PLAYBACK_EFFECT };
void ipw_playback_wait(struct ipw_playback *replay, enum ipw_playback_awaited what, int64_t id,
                       ipw_playback_fn fn, void *ud);
void ipw_playback_forget(struct ipw_playback *replay, const void *ud); /* its wait is over */
/* The line of the effect numbered `id`, if it has that name; else NULL and a divergence. */
const struct ipw_event_line *ipw_playback_effect(struct ipw_playback *replay, int64_t id,
                                                 const char *name);

/* Appends where two texts part, for a message: "at byte 17", then an excerpt of each. */
void ipw_playback_say_texts(struct ipw_buf *out, const char *then, const char *now);

/* How the i-th message of a request differs from the recorded one, both as JSON text (NULL: there
 * is none): "message 2 (user) of the request differs at messages[1].content, byte 17", and an
 * excerpt of each.  False, and nothing: they are equal. */
bool ipw_playback_say_message(struct ipw_buf *out, size_t i, const char *was, const char *now);

/* Lines that the program itself writes among a query's events, and nobody repeats. */
bool ipw_playback_is_own(const struct ipw_event_line *line);
/* What happened inside a tool that is on record as a whole: it does not run now. */
bool ipw_playback_is_inside(const struct ipw_event_line *line);
/* The number of an effect's line, or 0. */
int64_t ipw_playback_effect_id(const struct ipw_event_line *line);

#endif
