/* What the tests of src/base share. */
#ifndef IPW_TEST_BASE_CHECK_H
#define IPW_TEST_BASE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
