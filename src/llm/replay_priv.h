/* llm/replay_priv.h: what replay.c (pairing), replay_chat.c (the back end) and replay_say.c
 * (divergences in words) share. */
#ifndef IPW_LLM_REPLAY_PRIV_H
#define IPW_LLM_REPLAY_PRIV_H

#include "llm/client_priv.h"
#include "llm/replay.h"

enum ipw_wait_kind { WAIT_SEND, WAIT_REPLY, WAIT_REPEAT, WAIT_TOOL, WAIT_WEB, WAIT_EFFECT };

struct ipw_replay_wait {
    enum ipw_wait_kind kind;
    int64_t id; /* of the span or the effect */
    int repeat; /* DECISIONS: the attempt that the record has next for this call; 0: none */
    struct ipw_llm_call *call;
    ipw_replay_fn fn;
    void *ud;
    struct ipw_replay_wait *next;
};

struct ipw_emitted { /* by the agent, ahead of the record */
    struct ipw_event event;
    char *texts[8]; /* what its strings point to */
    size_t n_texts;
    struct ipw_emitted *next;
};

struct ipw_replay {
    struct ipw_replay_options o;
    struct ipw_llm *llm;
    struct ipw_replay_wait *waits;
    struct ipw_emitted *emitted, **emitted_tail;
    const struct ipw_record_line *at; /* the line that is being stepped; NULL: none, or taken */
    struct ipw_buf text;              /* one event as a line */
    int turn;                         /* chat calls so far */
    int64_t last_line;                /* that was paired */
    bool diverged, live;
    bool delivering; /* the next event pairs with `at`, whatever waits to be paired */
    /* DECISIONS: the spans of the tool calls so far, in order; and which stands for which. */
    int32_t *now_spans;
    struct ipw_replay_pair {
        int32_t then, now;
    } * pairs;
    size_t n_now, cap_now, n_pairs, cap_pairs;
};

/* replay_chat.c */
extern const struct ipw_llm_back ipw_replay_back;
/* The line is a request's start, or an attempt's end: hands it to the call that waits for it. */
bool ipw_replay_send(struct ipw_replay *r, const struct ipw_record_line *line);
bool ipw_replay_reply(struct ipw_replay *r, const struct ipw_record_line *line);
/* DECISIONS: a failed attempt and its repeat are passed over; the reply is that of the last one. */
void ipw_replay_pass_end(struct ipw_replay *r, const struct ipw_record_line *line);
void ipw_replay_pass_start(struct ipw_replay *r, const struct ipw_record_line *line);
void ipw_replay_chat_live(struct ipw_replay *r, struct ipw_llm_call *call);

/* replay.c */
struct ipw_replay_wait *ipw_replay_wait_add(struct ipw_replay *r, enum ipw_wait_kind kind,
                                            int64_t id);
void ipw_replay_wait_remove(struct ipw_replay *r, struct ipw_replay_wait *wait);

/* replay_say.c: appends what an event is, for a message; and how two lines differ. */
void ipw_replay_say_line(struct ipw_buf *out, const struct ipw_record_line *line);
void ipw_replay_say_event(struct ipw_buf *out, const struct ipw_event *event);
void ipw_replay_say_difference(struct ipw_buf *out, const struct ipw_replay *r,
                               const struct ipw_record_line *line, const char *now, size_t n);

#endif
