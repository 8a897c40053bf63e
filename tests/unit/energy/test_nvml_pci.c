/* NVIDIA's boards as the kernel lists them, also those that sleep: energy/sources/nvml_api.h. */
#include "energy/sources/nvml_api.h"

#include "unit/energy/tree.h"
#include "unit/unit.h"

static void device(const char *id, const char *vendor, const char *class_, const char *status)
{
    char file[128];

    snprintf(file, sizeof file, "%s/vendor", id);
    put(file, vendor);
    if (class_) {
        snprintf(file, sizeof file, "%s/class", id);
        put(file, class_);
    }
    if (status) {
        snprintf(file, sizeof file, "%s/power/runtime_status", id);
        put(file, status);
    }
}

/* Only displays and 3D controllers of NVIDIA count: no sound, no other maker, none without its
 * files; a list has room for as many as it says. */
static void test_scan(void **state)
{
    struct nvml_pci_device list[8];

    (void)state;
    assert_int_equal(ipw_nvml_pci_scan(list, 8, "/nonexistent"), 0);
    device("0000:01:00.0", "0x10de\n", "0x030000\n", "active\n");
    device("0000:01:00.1", "0x10de\n", "0x040300\n", "active\n");
    device("0000:02:00.0", "0x1002\n", "0x030000\n", "active\n");
    device("0000:03:00.0", "0x10de\n", NULL, NULL);
    device("0000:04:00.0", "0x10de\n", "0x030200\n", "suspended\n");
    device("0000:05:00.0", "0x10de\n", "0x030200\n", NULL);
    put("0000:06:00.0/class", "0x030000\n");
    device("0000:07:00.0 with a name that no bus id is as long as, whatever it may be", "0x10de\n",
           "0x030000\n", NULL);
    assert_int_equal(ipw_nvml_pci_scan(list, 8, tree_root), 3);
    assert_string_equal(list[0].bus_id, "0000:01:00.0");
    assert_false(list[0].asleep);
    assert_string_equal(list[1].bus_id, "0000:04:00.0");
    assert_true(list[1].asleep);
    assert_false(list[2].asleep); /* does not tell: not known to sleep */
    assert_int_equal(ipw_nvml_pci_scan(list, 1, tree_root), 1);
}

/* The file that says whether a board sleeps is opened by any spelling of its bus id. */
static void test_status(void **state)
{
    char root[5000];
    int fd;

    (void)state;
    device("0000:01:00.0", "0x10de\n", "0x030000\n", "active\n");
    fd = ipw_nvml_status_open(tree_root, "00000000:01:00.0");
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(ipw_nvml_status_open(tree_root, "a board"), -1);
    assert_int_equal(ipw_nvml_status_open(tree_root, "0000:09:00.0"), -1);
    memset(root, 'x', sizeof root - 1);
    root[sizeof root - 1] = '\0';
    assert_int_equal(ipw_nvml_status_open(root, "0000:01:00.0"), -1);
}

UNIT(nvml_pci)
{
    const struct CMUnitTest tests[] = {WITH_TREE(test_scan), WITH_TREE(test_status)};

    return cmocka_run_group_tests(tests, note_fds, check_fds);
}
