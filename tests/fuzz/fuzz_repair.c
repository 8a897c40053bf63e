/* `repair` on the folder of a run: any bytes in its files end in files that its readers take, or in
 * one line that says why not; what is taken out is told of and kept in a side file; and there is
 * nothing to repair a second time. */
#include "json_mutate.h"
#include "run/resume/repair.h"
#include "run_folder.h"

static char folder[64];
static size_t told;

static void leave(void)
{
    empty_folder(folder, NULL);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    make_folder(folder, sizeof folder, "repair");
    atexit(leave);
    return 0;
}

static void say(void *ud, const char *what)
{
    (void)ud;
    check(*what && !strchr(what, '\n'), "a remark that is not a line");
    check(ipw_utf8_valid(what, strlen(what)), "a remark that is not UTF-8");
    told++;
}

static bool has_side_file(void)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    bool found = false;

    while (entries && (entry = readdir(entries)))
        found |= strstr(entry->d_name, ".damaged") || strstr(entry->d_name, ".torn");
    if (entries) closedir(entries);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_repair first = {.say = say}, second = {.say = say};
    struct ipw_err err = {0};
    int rc;

    if (!run_folder_put(folder, data, size)) return -1;
    told = 0;
    rc = ipw_repair_run(&first, folder, &err);
    if (rc) {
        check_error(&err, rc);
        return 0;
    }
    check(told >= (first.dropped || first.torn), "a repair that nobody is told of");
    if (first.dropped || first.torn) check(has_side_file(), "what was taken out is not kept");
    /* Lines that do not follow from the events and samples are set aside, too. */
    if (has_side_file())
        check(first.dropped || first.torn || first.mended,
              "something is kept that nobody took out");
    if (ipw_repair_run(&second, folder, &err)) IPW_BUG("the second time: %s", err.text);
    check(!second.dropped && !second.torn, "there is more to repair the second time");
    return 0;
}
