/* llm/playback.h: answers one query of a replay from the saved run.
 *
 * The agent runs again.  Models, tools and clocks answer with the saved lines of the query, in file
 * order.  Each event that the agent emits is paired with the next saved line, gets the line's
 * times, and must equal it byte for byte.  The first event that differs is a divergence.
 *
 * - IPW_PLAYBACK_EXACT (hermetic replay) works like that.
 * - IPW_PLAYBACK_DECISIONS (tool replay) only takes the model's replies from the saved run, in
 *   their order and for any request.  Everything else is real, and tool results are compared.
 *
 * ipw_playback_llm() is the back end of ipw_llm_start().  Tools, web requests and effects
 * (script/recorded_effect.h) get their answers through ipw_playback_wait() and
 * ipw_playback_effect().  The owner drives the replay: it calls ipw_playback_step() with the
 * query's next line.  Answers are delivered there, never inside the call that asks for them.  With
 * `servers`, a query continues on those servers after a divergence. */
#ifndef IPW_LLM_PLAYBACK_H
#define IPW_LLM_PLAYBACK_H

#include "llm/client.h"
#include "trace/event_reader.h"

enum ipw_playback_mode { IPW_PLAYBACK_EXACT, IPW_PLAYBACK_DECISIONS };

struct ipw_playback_options {
    enum ipw_playback_mode mode;
    struct ipw_event_reader *events;
    int32_t query;
    size_t reach; /* how many lines to look ahead for lines of the query */
    struct ipw_loop *loop;
    const char *over; /* JSON object whose members override those of every request, or NULL */
    bool use_max_completion_tokens;
    int64_t force_tokens;    /* > 0: exact length of every reply */
    struct ipw_llm *servers; /* used after a divergence; NULL: end the query */
    const char *live_model;  /* the model to ask there; NULL: the request's */

    /* Write the event into the new run.  `line`: the saved line that it pairs with, or NULL. */
    void (*write)(void *ud, struct ipw_event *event, const struct ipw_event_line *line);
    void (*stir)(void *ud);                       /* the agent did something: call step() again */
    void (*diverged)(void *ud, const char *text); /* once; `text` may have several lines */
    /* A tool's result and the saved one (NULL: not in the saved run); only for DECISIONS. */
    void (*tool)(void *ud, const struct ipw_event_line *now, const struct ipw_event_line *was);
    void *ud;
};

struct ipw_playback;

struct ipw_playback *ipw_playback_new(const struct ipw_playback_options *options);
void ipw_playback_free(struct ipw_playback *replay); /* after the agent; NULL is fine */
struct ipw_llm *ipw_playback_llm(struct ipw_playback *replay);

/* Call it with every event that the query emits. */
void ipw_playback_emit(struct ipw_playback *replay, const struct ipw_event *event);

enum ipw_playback_step {
    IPW_PLAYBACK_TAKEN,   /* the line was used: drop it */
    IPW_PLAYBACK_PENDING, /* the agent must do something first */
};
/* `line`: the query's next line.  Can end the agent, and thereby this playback. */
enum ipw_playback_step ipw_playback_step(struct ipw_playback *replay,
                                         const struct ipw_event_line *line);
/* A deadlock: the agent waits for an answer, but `line` (NULL: the end) is something else. */
void ipw_playback_stalled(struct ipw_playback *replay, const struct ipw_event_line *line);
/* The agent ended, but the saved run continues with `line`. */
void ipw_playback_ended(struct ipw_playback *replay, const struct ipw_event_line *line,
                        const char *outcome);
void ipw_playback_diverge(struct ipw_playback *replay, const char *fmt, ...) IPW_PRINTF(2, 3);
/* After a divergence: answers all waiting questions for real.  Not inside a callback. */
void ipw_playback_go_live(struct ipw_playback *replay);
int ipw_playback_turns(const struct ipw_playback *replay);

/* ---- for the library functions ---- */

/* Whether clocks, files and child processes now answer from the saved run.  NULL: no. */
bool ipw_playback_answers(const struct ipw_playback *replay);
/* `line` NULL: the query now runs without the saved run; do the work for real. */
typedef void (*ipw_playback_fn)(void *ud, const struct ipw_event_line *line);
/* Waits for the end of the tool call or web request with span `id`; or for effect number -id. */
void ipw_playback_wait(struct ipw_playback *replay, int64_t id, ipw_playback_fn fn, void *ud);
void ipw_playback_forget(struct ipw_playback *replay, const void *ud); /* cancels its wait */
/* The line of effect number `id`.  If it has another name: NULL, and a divergence. */
const struct ipw_event_line *ipw_playback_effect(struct ipw_playback *replay, int64_t id,
                                                 const char *name);

/* Appends where two texts begin to differ: "at byte 17", then an excerpt of each. */
void ipw_playback_say_texts(struct ipw_buf *out, const char *then, const char *now);

/* Appends how the i-th message of a request differs from the saved one: "message 2 (user) of the
 * request differs at messages[1].content, byte 17", and an excerpt of each.  Both are JSON texts,
 * or NULL if there is no such message.  False: they are equal, and nothing was appended. */
bool ipw_playback_say_message(struct ipw_buf *out, size_t i, const char *was, const char *now);

/* Whether the line is a note of the program itself, which a replay copies. */
bool ipw_playback_is_own(const struct ipw_event_line *line);
/* Whether the line is from inside a tool whose whole result is saved, so the tool does not run. */
bool ipw_playback_is_inside(const struct ipw_event_line *line);
/* The number of the effect in this line, or 0. */
int64_t ipw_playback_effect_id(const struct ipw_event_line *line);

#endif
