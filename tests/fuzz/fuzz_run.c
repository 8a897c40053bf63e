/* The folder of a run, as `validate` and `ledger --check` read it: any bytes in its files end in an
 * answer or in one line that says what is wrong. */
#include "audit/validate.h"
#include "json_mutate.h"
#include "run_folder.h"

static char folder[64];

static void leave(void)
{
    empty_folder(folder, NULL);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    make_folder(folder, sizeof folder, "run");
    atexit(leave);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipw_validation v;
    struct ipw_err err = {0};

    if (!run_folder_put(folder, data, size)) return -1;
    if (ipw_validate_run(&v, folder, &err) && (!err.code || !err.text[0] || strchr(err.text, '\n')))
        abort();
    return 0;
}
