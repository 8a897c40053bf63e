/* Boards and chips in a folder of the test's own, and the hwmon sources over it. */
#ifndef IPW_TESTS_UNIT_ENERGY_HWMON_TREE_H
#define IPW_TESTS_UNIT_ENERGY_HWMON_TREE_H

#include "energy/sources/hwmon.h"

#include "unit/energy/ask.h"
#include "unit/energy/tree.h"

static inline struct ipw_source *open_with(const char *name, const char *gpus)
{
    const struct ipw_source_place place = {.hwmon = tree_root, .gpus = gpus, .ask = test_ask};
    struct ipw_source *s;
    struct ipw_err err = {0};

    if (ipw_hwmon_open(&s, &place, name, &err)) fail_msg("%s", err.text);
    assert_string_equal(s->name, name);
    return s;
}

/* A board at a bus id: hwmonN with a link to its device, as the kernel makes it. */
static inline void board(int n, const char *driver, const char *bus)
{
    char file[96], target[96];

    snprintf(file, sizeof file, "pci/%s/power/runtime_status", bus);
    put(file, "active\n");
    snprintf(file, sizeof file, "hwmon%d/name", n);
    put(file, driver);
    snprintf(file, sizeof file, "hwmon%d/device", n);
    snprintf(target, sizeof target, "../pci/%s", bus);
    put_link(file, target);
}

#endif
