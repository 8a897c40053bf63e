/* Rows of the Mooncake line format: no line crashes the reader; what it takes is within its bounds,
 * and the prompt made of it has a word for each token. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/workload.h"
#include "trace/workload_prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_buf prompt = IPW_BUF(16 * IPW_MIB);
    struct ipw_workload_turn turn;
    struct ipw_err err = {0};
    char *session;
    int64_t words = 0;

    if (ipw_workload_row(&turn, &session, (const char *)data, size, &err)) {
        if (!err.code || !err.text[0] || strchr(err.text, '\n')) abort();
    } else {
        if (turn.at_ns < -1 || turn.gap_ns < 0 || turn.input_tokens < 0 || turn.output_tokens < 0 ||
            turn.n_messages || turn.rest)
            abort();
        if (turn.input_tokens < 100000) {
            ipw_workload_prompt(&prompt, &turn, size);
            for (size_t i = 0; i < prompt.len; i++) words += prompt.data[i] == ' ';
            if (prompt.failed || words != (turn.input_tokens ? turn.input_tokens : 1)) abort();
        }
    }
    ipw_buf_release(&prompt);
    ipw_workload_turn_release(&turn);
    free(session);
    return 0;
}
