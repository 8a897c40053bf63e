/* The loop of a test: make_loop() before each case; free_loop() after it counts leftovers. */
#ifndef TEST_IO_WITH_LOOP_H
#define TEST_IO_WITH_LOOP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/loop.h"

static struct ipw_loop *loop;

static inline int make_loop(void **state)
{
    (void)state;
    return ipw_loop_new(&loop, NULL);
}

static inline int free_loop(void **state)
{
    (void)state;
    assert_int_equal(ipw_loop_leftovers(loop), 0);
    ipw_loop_free(loop);
    return 0;
}

#endif
