/* llm/playback_priv.h: what playback.c (pairing), playback_chat.c (the back end) and playback_say.c
 * (divergences in words) share. */
#ifndef IPW_LLM_PLAYBACK_PRIV_H
#define IPW_LLM_PLAYBACK_PRIV_H

#include "llm/client_priv.h"
#include "llm/playback.h"

enum ipw_wait_kind { WAIT_SEND, WAIT_REPLY, WAIT_REPEAT, WAIT_WORLD };

struct ipw_playback_wait {
    enum ipw_wait_kind kind;
    int64_t id; /* the span; for an effect, minus its number */
    int repeat; /* DECISIONS: the saved run's next attempt for this call; 0: none */
    struct ipw_llm_call *call;
    ipw_playback_fn fn;
    void *ud;
    struct ipw_playback_wait *next;
};

struct ipw_playback {
    struct ipw_playback_options o;
    struct ipw_llm *llm;
    struct ipw_playback_wait *waits;
    /* Events that the agent emitted before their saved lines were reached, as lines. */
    struct ipw_event_line *emitted, **emitted_tail;
    const struct ipw_event_line *at; /* the line of the current step; NULL: no step, or used */
    struct ipw_buf text;             /* an event as a line, for comparing */
    int turn;                        /* chat calls so far */
    int64_t last_line;               /* number of the last line that was paired */
    bool diverged, live;
    bool delivering; /* the next event pairs with `at`, even if others wait */
    /* DECISIONS: the spans of the tool calls so far, in order; pairs of saved and new span. */
    int32_t *now_spans;
    struct ipw_playback_pair {
        int32_t then, now;
    } * pairs;
    size_t n_now, cap_now, n_pairs, cap_pairs;
};

/* playback_chat.c */
extern const struct ipw_llm_back ipw_playback_back;
/* Delivers a line (start or end of an attempt) to the call that waits for it. */
bool ipw_playback_send(struct ipw_playback *r, const struct ipw_event_line *line);
bool ipw_playback_reply(struct ipw_playback *r, const struct ipw_event_line *line);
/* DECISIONS: skips failed attempts and their retries; the reply of the last attempt is used. */
void ipw_playback_pass_end(struct ipw_playback *r, const struct ipw_event_line *line);
void ipw_playback_pass_start(struct ipw_playback *r, const struct ipw_event_line *line);
/* Sends the call to a server.  `in_flight`: its attempt waits for a saved reply and is ended. */
void ipw_playback_chat_live(struct ipw_playback *r, struct ipw_llm_call *call, bool in_flight);

/* playback.c */
struct ipw_playback_wait *ipw_playback_wait_add(struct ipw_playback *r, enum ipw_wait_kind kind,
                                                int64_t id);
struct ipw_playback_wait *ipw_playback_wait_find(const struct ipw_playback *r,
                                                 enum ipw_wait_kind kind, int64_t id);
void ipw_playback_wait_remove(struct ipw_playback *r, struct ipw_playback_wait *wait);

/* playback_say.c: for messages, appends what a line is, or how two differ. */
void ipw_playback_say_line(struct ipw_buf *out, const struct ipw_event_line *line);
void ipw_playback_say_difference(struct ipw_buf *out, const struct ipw_playback *r,
                                 const struct ipw_event_line *line,
                                 const struct ipw_event_line *now);

#endif
