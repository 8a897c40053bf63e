/* json_bench: what reading and writing JSON costs this program.
 *
 * Each line says what its figure measures.  Times are CPU time of this thread (so that a busy
 * machine bends them less), best of several rounds.  Runs in about two seconds, by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "json/json.h"
#include "json/write.h"

enum { ROUNDS = 7 };

static const char chunk[] =
    "{\"id\":\"chatcmpl-7QyqpwdfhqwajicIEznoc6Q47XAyW\",\"object\":\"chat.completion.chunk\","
    "\"created\":1795228267,\"model\":\"qwen3:8b-q4_K_M\",\"system_fingerprint\":\"fp_ollama\","
    "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\" intelligence\"},"
    "\"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"tool_calls\":[]}";

static size_t sink; /* results go here, so that no work is optimised away */

struct job {
    const char *text;
    size_t n;
    struct ipw_json *doc;
    struct ipw_buf *out;
};

static void parse_free(struct job *job)
{
    struct ipw_json *doc;

    if (ipw_json_parse(&doc, job->text, job->n, NULL, NULL)) abort();
    sink += ipw_json_kind(doc);
    ipw_json_free(doc);
}

static void check(struct job *job) { sink += ipw_json_valid(job->text, job->n); }

static void print(struct job *job)
{
    ipw_buf_clear(job->out);
    ipw_json_print(job->out, job->doc);
}

static void escape(struct job *job)
{
    ipw_buf_clear(job->out);
    ipw_json_escape(job->out, job->text, job->n);
}

static void look_up(struct job *job)
{
    const struct ipw_json *choice = ipw_json_at(ipw_json_get(job->doc, "choices"), 0);
    sink += ipw_json_str_len(ipw_json_get(ipw_json_get(choice, "delta"), "content"));
}

static void doubles(struct job *job)
{
    const double *x = (const double *)(const void *)job->text;

    ipw_buf_clear(job->out);
    for (size_t i = 0; i < job->n; i++) ipw_json_double(job->out, x[i]);
}

/* Nanoseconds of one call. */
static double best_ns(void (*call)(struct job *), struct job *job, int calls)
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = ipw_cpu_thread_ns();
        for (int i = 0; i < calls; i++) call(job);
        double ns = (double)(ipw_cpu_thread_ns() - start) / calls;
        if (ns < best) best = ns;
    }
    return best;
}

static void line(const char *what, double ns, size_t bytes)
{
    printf("%-52s %10.0f ns %9.0f MB/s\n", what, ns, (double)bytes * 1e3 / ns);
}

/* A chat history of about 1 MB, as a request or a trace line holds it. */
static void make_history(struct ipw_buf *out)
{
    struct ipw_jw w;

    ipw_jw_init(&w, out);
    ipw_jw_arr(&w);
    for (int i = 0; i < 1000; i++) {
        ipw_jw_obj(&w);
        ipw_jw_key(&w, "content");
        char text[900];
        for (size_t k = 0; k < sizeof text; k++)
            text[k] = k % 61 == 60 ? '\n'
                      : k % 7 == 6 ? ' '
                                   : (char)('a' + (k * 31 + (size_t)i) % 26);
        ipw_jw_strn(&w, text, sizeof text);
        ipw_jw_kstr(&w, "role", i % 2 ? "user" : "assistant");
        ipw_jw_kint(&w, "tokens", i);
        ipw_jw_knum(&w, "wall_s", i * 0.37);
        ipw_jw_obj_end(&w);
    }
    ipw_jw_arr_end(&w);
}

int main(void)
{
    struct ipw_buf history = IPW_BUF(16 * IPW_MIB), out = IPW_BUF(64 * IPW_MIB);
    struct job job = {.text = chunk, .n = sizeof chunk - 1, .out = &out};
    enum { PLAIN = 20000, DOUBLES = 10000 };
    char *plain = ipw_malloc(PLAIN), *wide = ipw_malloc(PLAIN);
    double *x = ipw_malloc(DOUBLES * sizeof *x);
    uint64_t seed = 88172645463325252U;

    printf("one streamed chunk of %zu bytes\n", job.n);
    line("  guard alone (ipw_json_valid)", best_ns(check, &job, 20000), job.n);
    line("  parse + free", best_ns(parse_free, &job, 20000), job.n);
    if (ipw_json_parse(&job.doc, job.text, job.n, NULL, NULL)) return 1;
    line("  print, keys sorted", best_ns(print, &job, 20000), job.n);
    line("  find choices[0].delta.content", best_ns(look_up, &job, 200000), job.n);
    ipw_json_free(job.doc);

    make_history(&history);
    job = (struct job){.text = history.data, .n = history.len, .out = &out};
    printf("a chat history of %zu bytes\n", job.n);
    line("  guard alone", best_ns(check, &job, 20), job.n);
    line("  parse + free", best_ns(parse_free, &job, 20), job.n);
    if (ipw_json_parse(&job.doc, job.text, job.n, NULL, NULL)) return 1;
    line("  print, keys sorted", best_ns(print, &job, 20), job.n);
    ipw_json_free(job.doc);

    memset(plain, 'x', PLAIN);
    for (size_t i = 0; i + 3 <= PLAIN; i += 3) memcpy(wide + i, "\xE4\xB8\xAD", 3);
    printf("escape\n");
    job = (struct job){.text = plain, .n = PLAIN, .out = &out};
    line("  20 kB of plain ASCII", best_ns(escape, &job, 2000), PLAIN);
    for (size_t i = 60; i < PLAIN; i += 61) plain[i] = '\n';
    line("  20 kB with a line break every 61 bytes", best_ns(escape, &job, 2000), PLAIN);
    job = (struct job){.text = wide, .n = PLAIN / 3 * 3, .out = &out};
    line("  20 kB of Chinese", best_ns(escape, &job, 500), job.n);

    printf("doubles, each\n");
    for (int kind = 0; kind < 3; kind++) {
        static const char *const names[] = {"  17 digits (a measured energy)",
                                            "  3 decimals (a power reading)", "  whole"};
        for (size_t i = 0; i < DOUBLES; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            x[i] = (double)(seed >> 11) * 0x1p-53 * 500;
            if (kind == 1) x[i] = (double)(int64_t)(x[i] * 1000) / 1000;
            if (kind == 2) x[i] = (double)(int64_t)x[i];
        }
        job = (struct job){.text = (const char *)x, .n = DOUBLES, .out = &out};
        double ns = best_ns(doubles, &job, 10) / DOUBLES;
        line(names[kind], ns, out.len / DOUBLES);
    }
    free(plain);
    free(wide);
    free(x);
    ipw_buf_release(&history);
    ipw_buf_release(&out);
    return sink == 0;
}
