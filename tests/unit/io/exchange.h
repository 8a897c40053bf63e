/* One HTTP request of a test and what came of it; the loop, the pool and the server around it. */
#ifndef TEST_IO_EXCHANGE_H
#define TEST_IO_EXCHANGE_H

#include "io/http.h"
#include "server.h"

#define MS IPW_NS_PER_MS

extern struct server server;
extern struct ipw_loop *loop;
extern struct ipw_http *http;

enum act {
    NOTHING,
    CANCEL_IN_HEADERS,
    CANCEL_IN_DATA,
    ABORT_IN_DATA,
    START_IN_HEADERS,
    START_IN_DATA,
    START_IN_DONE,
    FREE_IN_DATA,
    FREE_IN_DONE
};

struct exchange {
    struct ipw_http_call *call;
    struct ipw_http_result result;
    char error[512], type[128];
    char fields[2048]; /* "Name=value;" each */
    char body[4096];
    size_t n_body, chunks;
    int headers, done;
    enum act act;
    struct exchange *other; /* started or cancelled by `act` */
    const char *other_path;
    bool cancel_other_in_data;
};

extern const struct ipw_http_callbacks exchange_callbacks; /* without ud */

int set_up(void **state);
int tear_down(void **state);
int run_http_tests(int (*run)(void)); /* main() around cmocka: set up libcurl, count descriptors */
void start(struct exchange *x, const char *path, const struct ipw_http_request *with);
void start_url(struct exchange *x, const char *url, const struct ipw_http_request *with);
void run_until(const int *done);
struct exchange get(const char *path, const struct ipw_http_request *with); /* start, run, done */

#endif
