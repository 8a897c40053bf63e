#include "run/script_options.h"

#include <stdlib.h>

#include "script/search.h"
#include "script/vm.h"

const char *const *ipw_script_paths(const struct ipw_script_options *o)
{
    return (const char *const *)o->paths.items;
}

struct ipw_quota ipw_script_quota(const struct ipw_script_options *o)
{
    return (struct ipw_quota){
        .max_bytes = o->workspace_bytes ? o->workspace_bytes : IPW_WORKSPACE_BYTES,
        .max_files = o->workspace_files ? (size_t)o->workspace_files : IPW_WORKSPACE_FILES};
}

void ipw_script_options_apply(const struct ipw_script_options *o)
{
    ipw_search_allow(o->lua_path, o->allow_native);
}

struct ipw_web *ipw_script_web(const struct ipw_script_options *o, struct ipw_loop *loop,
                               const char *cacert)
{
    struct ipw_web_options options = {.allow = (const char *const *)o->web_allow.items,
                                      .via_proxy = o->web_via_proxy,
                                      .cacert = cacert};

    return o->no_web ? NULL : ipw_web_new(loop, &options);
}

void ipw_script_options_release(struct ipw_script_options *o)
{
    free(o->paths.items);
    free(o->web_allow.items);
    free(o->read.items);
    *o = (struct ipw_script_options){0};
}
