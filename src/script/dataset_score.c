/* Scores answers, and says what a grader is given, in the dataset's state. */
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "script/dataset_priv.h"
#include "script/value.h"
#include "script/vm.h"

struct score_args {
    struct ipw_dataset *cases;
    size_t i;
    const struct ipw_saved_case *saved; /* of a saved run; or NULL: the i-th task */
    const char *response, *source;
    struct ipw_score *out;
};

static void set_text(lua_State *L, const char *name, const char *text) // [0, 0]
{
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void set_object(lua_State *L, const char *name, const char *json) // [0, 0]
{
    if (json && ipw_value_decode(L, json, strlen(json), NULL) == 0) lua_setfield(L, -2, name);
}

/* The task that ipw.cases makes of a trace. [0, +1, e] */
static void push_saved(lua_State *L, int script, const struct ipw_saved_case *saved)
{
    ipw_value_push_function(L, "ipw.cases", "saved");
    lua_pushvalue(L, script);
    lua_createtable(L, 0, 8);
    set_text(L, "id", saved->id);
    set_text(L, "question", saved->question);
    set_text(L, "answer", saved->answer);
    set_text(L, "subject", saved->subject);
    set_object(L, "metadata", saved->metadata);
    set_object(L, "reference", saved->reference);
    set_text(L, "judge_verdict", saved->judge_verdict);
    set_object(L, "graded", saved->score_metadata);
    lua_call(L, 2, 1);
}

static int score_protected(lua_State *L)
{
    struct score_args *a = lua_touserdata(L, 1);
    struct ipw_score *out = a->out;
    bool has_answer = a->response != NULL;

    lua_rawgeti(L, LUA_REGISTRYINDEX, a->cases->script); // args script
    if (a->saved) {
        push_saved(L, 2, a->saved);
    } else {
        lua_rawgeti(L, LUA_REGISTRYINDEX, a->cases->records); // args script records
        lua_rawgeti(L, -1, a->cases->list[a->i].number);
        lua_replace(L, -2); // args script record
    }

    /* extract(text, task, source): the answer itself, and how it was found. */
    if (a->response && lua_getfield(L, 2, "extract") == LUA_TFUNCTION) {
        lua_pushstring(L, a->response);
        lua_pushvalue(L, 3);
        lua_pushstring(L, a->source);
        lua_call(L, 3, 2); // args script record answer source
        has_answer = lua_isstring(L, -2);
        if (has_answer) ipw_buf_adds(&out->answer, lua_tostring(L, -2));
        if (lua_isstring(L, -1))
            snprintf(out->source, sizeof out->source, "%s", lua_tostring(L, -1));
    } else if (a->response) {
        ipw_buf_adds(&out->answer, a->response);
        snprintf(out->source, sizeof out->source, "%s", a->source ? a->source : "response");
    }
    lua_settop(L, 3);
    if (lua_getfield(L, 2, "score") != LUA_TFUNCTION) {
        snprintf(out->reason, sizeof out->reason, "the dataset has no scorer");
        return 0;
    }
    if (has_answer)
        lua_pushlstring(L, ipw_buf_str(&out->answer), out->answer.len);
    else
        lua_pushnil(L);
    lua_pushvalue(L, 3);
    lua_call(L, 2, 2); // args script record verdict details
    if (lua_isboolean(L, 4)) out->resolved = lua_toboolean(L, 4);
    if (lua_istable(L, 5) && ipw_value_encode(L, 5, &out->metadata, NULL) == 0 &&
        ipw_buf_str(&out->metadata)[0] == '[') { /* the files of a run need an object */
        struct ipw_buf list = out->metadata;

        ipw_buf_init(&out->metadata, list.max + 16);
        ipw_buf_addf(&out->metadata, "{\"list\":%s}", ipw_buf_str(&list));
        ipw_buf_release(&list);
    }
    if (lua_istable(L, 5) && out->resolved < 0 &&
        lua_getfield(L, 5, "unscorable_reason") == LUA_TSTRING)
        snprintf(out->reason, sizeof out->reason, "%s", lua_tostring(L, -1));
    if (lua_isstring(L, 5)) snprintf(out->reason, sizeof out->reason, "%s", lua_tostring(L, 5));
    return 0;
}

static void score(struct ipw_dataset *cases, struct score_args *args)
{
    struct ipw_score *out = args->out;
    struct ipw_err err;
    lua_State *L;

    *out = (struct ipw_score){.resolved = -1,
                              .answer = IPW_BUF(IPW_DATASET_TEXT_MAX),
                              .metadata = IPW_BUF(IPW_DATASET_TEXT_MAX),
                              .source = "none"};
    if (cases->unscored) {
        snprintf(out->reason, sizeof out->reason, "%s", cases->unscored);
        return;
    }
    L = ipw_vm_lua(cases->vm);
    lua_pushcfunction(L, score_protected);
    lua_pushlightuserdata(L, args);
    if (ipw_vm_call(cases->vm, 1, 0, &err)) {
        out->resolved = -1;
        snprintf(out->reason, sizeof out->reason, "%.120s", err.text);
        ipw_vm_renew_cpu(cases->vm); /* the next answer gets its own CPU time */
    }
}

void ipw_dataset_score(struct ipw_dataset *cases, size_t i, const char *response,
                       const char *source, struct ipw_score *out)
{
    score(cases, &(struct score_args){cases, i, NULL, response, source, out});
}

void ipw_dataset_score_saved(struct ipw_dataset *cases, const struct ipw_saved_case *saved,
                             const char *response, const char *source, struct ipw_score *out)
{
    score(cases, &(struct score_args){cases, 0, saved, response, source, out});
}

/* ---- graders ---- */

struct grade_args {
    struct ipw_dataset *cases;
    const struct ipw_saved_case *saved;
    const struct ipw_grade_given *given;
    struct ipw_grade_task *out;
};

static char *taken_text(lua_State *L, const char *name) // [0, 0]
{
    char *copy;

    lua_getfield(L, -1, name);
    copy = ipw_strdup(lua_tostring(L, -1)); /* NULL gives NULL */
    lua_pop(L, 1);
    return copy;
}

static bool taken_flag(lua_State *L, const char *name) // [0, 0]
{
    bool set;

    lua_getfield(L, -1, name);
    set = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

static int grade_protected(lua_State *L)
{
    struct grade_args *a = lua_touserdata(L, 1);
    struct ipw_buf form = IPW_BUF(IPW_DATASET_TEXT_MAX);
    struct ipw_grade_task *out = a->out;

    ipw_value_push_function(L, "ipw.grade", "task");
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->cases->script); // args task script
    push_saved(L, 3, a->saved);
    lua_pushstring(L, a->given->grader == IPW_GRADER_CODE ? "code" : "judge");
    lua_createtable(L, 0, 3);
    set_text(L, "response", a->given->response);
    set_text(L, "answer", a->given->answer);
    set_text(L, "template", a->given->template);
    lua_call(L, 4, 1);
    if (!lua_istable(L, -1)) return luaL_error(L, "ipw.grade gave no task");
    out->wanted = taken_flag(L, "wanted");
    out->official = taken_flag(L, "official");
    out->missing = taken_flag(L, "missing");
    out->why = taken_text(L, "why");
    out->prompt = taken_text(L, "prompt");
    if (lua_getfield(L, -1, "form") == LUA_TTABLE && ipw_value_encode(L, -1, &form, NULL) == 0)
        out->form = ipw_buf_take(&form, NULL);
    ipw_buf_release(&form);
    return 0;
}

void ipw_dataset_grade_task(struct ipw_dataset *cases, const struct ipw_saved_case *saved,
                            const struct ipw_grade_given *given, struct ipw_grade_task *out)
{
    struct grade_args args = {cases, saved, given, out};
    struct ipw_err err;
    lua_State *L;

    *out = (struct ipw_grade_task){0};
    if (cases->unscored) return;
    L = ipw_vm_lua(cases->vm);
    lua_pushcfunction(L, grade_protected);
    lua_pushlightuserdata(L, &args);
    if (ipw_vm_call(cases->vm, 1, 0, &err)) {
        ipw_grade_task_release(out);
        *out = (struct ipw_grade_task){.wanted = true, .why = ipw_strdup(err.text)};
        ipw_vm_renew_cpu(cases->vm);
    }
}

void ipw_grade_task_release(struct ipw_grade_task *task)
{
    free(task->why);
    free(task->prompt);
    free(task->form);
    *task = (struct ipw_grade_task){0};
}

struct patch_args {
    const struct ipw_buf *found;
    struct ipw_buf *out;
};

static int patch_protected(lua_State *L)
{
    const struct patch_args *a = lua_touserdata(L, 1);
    const char *text;
    size_t n;

    ipw_value_push_function(L, "ipw.grade", "patch");
    lua_pushlstring(L, a->found->data, a->found->len);
    lua_call(L, 1, 1);
    text = luaL_checklstring(L, -1, &n);
    ipw_buf_add(a->out, text, n);
    return 0;
}

int ipw_dataset_grade_patch(struct ipw_dataset *cases, const struct ipw_buf *found,
                            struct ipw_buf *out, struct ipw_err *err)
{
    struct patch_args args = {found, out};
    lua_State *L = ipw_vm_lua(cases->vm);

    lua_pushcfunction(L, patch_protected);
    lua_pushlightuserdata(L, &args);
    return ipw_vm_call(cases->vm, 1, 0, err);
}

void ipw_score_release(struct ipw_score *score)
{
    ipw_buf_release(&score->answer);
    ipw_buf_release(&score->metadata);
}
