#include "script/table_text.h"

#include <stdio.h>

#include "script/chunk.h"
#include "script/host.h"
#include "script/sandbox.h"
#include "script/value.h"

int ipw_table_text(struct ipw_buf *out, const char *file, struct ipw_err *err)
{
    struct ipw_host nobody = {0};
    struct ipw_vm_options options = {.host = &nobody};
    char path[1024];
    struct ipw_vm *vm;
    int rc = ipw_sandbox_open(&vm, &options, err);

    if (rc) return rc;
    snprintf(path, sizeof path, "builtin:%s", file);
    rc = ipw_chunk_run(vm, path, err);
    if (!rc) rc = ipw_value_encode(ipw_vm_lua(vm), -1, out, err);
    ipw_sandbox_close(vm);
    return rc;
}
