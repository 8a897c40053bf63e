# Law 7: one query's endless loop, memory bomb, odd error or odd yield ends that query alone.
. "$(dirname "$0")/lib.sh"

cat >rows.jsonl <<'EOF'
{"id":"loop","question":"loop","answer":"42"}
{"id":"pcall_loop","question":"pcall_loop","answer":"42"}
{"id":"co_loop","question":"co_loop","answer":"42"}
{"id":"memory","question":"memory","answer":"42"}
{"id":"strings","question":"strings","answer":"42"}
{"id":"raise_table","question":"raise_table","answer":"42"}
{"id":"raise_nil","question":"raise_nil","answer":"42"}
{"id":"alien_yield","question":"alien_yield","answer":"42"}
{"id":"deep","question":"deep","answer":"42"}
{"id":"globals","question":"globals","answer":"42"}
{"id":"good","question":"good","answer":"42"}
EOF
cat >wild.lua <<'EOF'
local llm = require "ipw.llm"
local acts = {
  loop = function() while true do end end,
  pcall_loop = function() while true do pcall(function() while true do end end) end end,
  co_loop = function() coroutine.wrap(function() while true do end end)() end,
  memory = function() local t = {} while true do t[#t + 1] = { #t } end end,
  strings = function() local s = "x" while true do s = s .. s end end,
  raise_table = function() error { code = "mine", message = "a table was raised" } end,
  raise_nil = function() error(nil) end,
  alien_yield = function() coroutine.yield("to nobody") end,
  deep = function() local function f() return 1 + f() end return f() end,
  globals = function() leak = 1 string.rep = nil end,
  good = function()
    assert(rawget(_G, "leak") == nil and string.rep, "another query's state leaked in")
    return "42"
  end,
}
return { name = "wild", run = function(query)
  llm.chat { messages = { llm.user(query.prompt) } }
  local name
  for word in query.prompt:gmatch("[%w_]+") do if acts[word] then name = word end end
  return acts[name]() or "nothing"
end }
EOF

step "every query ends, each with its own outcome"
start_fake --bench 0
expect_exit 0 agent run wild.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --concurrency 4 --output wild
assert_file_lines wild/traces.jsonl 11
outcome() { assert_json wild/traces.jsonl "[q for q in d if q['query_id'] == '$1'][0]['outcome'] == '$2'"; }
outcome loop cpu
outcome pcall_loop cpu
outcome co_loop cpu
outcome memory memory
outcome strings memory
outcome raise_table error
outcome raise_nil error
outcome alien_yield error
outcome deep memory
outcome good answered
assert_json wild/traces.jsonl "[q for q in d if q['query_id'] == 'good'][0]['is_resolved'] is True"
assert_json wild/traces.jsonl "[q for q in d if q['query_id'] == 'raise_table'][0]['error'] == 'a table was raised'"

step "the turn that a failed query had is kept"
assert_json wild/traces.jsonl "all(len(q['turns']) == 1 and q['turns'][0]['output_tokens'] for q in d)"

step "the heap stayed near its cap"
assert_json wild/traces.jsonl "all(q['lua_peak_bytes'] < 4 * 64 * 1024 * 1024 for q in d)"

step "the documented line puts a stranger's agent into a sandbox, where nothing reads the key or another file"
stop_fake
expect_exit 2 agent run wild.lua --untrusted --dataset rows.jsonl
check_err "there is no --untrusted any more"
if can_confine; then
    mkdir runs bin
    ln -s "${IPW_CONFINED-$IPW_AGENT}" bin/ipw-agent
    echo '{"question":"Look around.","answer":"42"}' >tasks.jsonl
    cat >their_agent.lua <<'EOF'
local proc = require "ipw.proc"
return { name = "theirs", run = function()
  local seen = assert(proc.run { "sh", "-c", [[
    echo "$OPENAI_API_KEY"; cat /proc/*/environ | tr '\0' '\n'; ls ]] .. HOME .. [[; echo mark >/work/mark; echo mark >/usr/mark
    kill -0 ]] .. OUTSIDE .. [[ && echo alive; cp tasks.jsonl ..; echo mark >/work/runs/mark]] })
  return seen.stdout
end }
EOF
    sed -i "1i local HOME, OUTSIDE = '$IPW_SOURCE_DIR', $$" their_agent.lua
    sed -n '/^<!-- sandbox -->/,/^```$/p' "$IPW_SOURCE_DIR/docs/security.md" | sed '1,2d;$d' >line
    grep -q '^bwrap ' line || fail "docs/security.md has no line that begins with bwrap"
    sed 's/ tasks.jsonl/ --model demo --no-estimate --unsafe-tools tasks.jsonl/' line >marked
    expect_exit 0 env OPENAI_API_KEY=sk-not-for-strangers PATH="$WORK/bin:$PATH" sh marked
    assert_json runs/theirs*/traces.jsonl 'd[0]["error"] is None and "PWD=" in d[0]["response_text"]' # it saw itself
    assert_json runs/theirs*/traces.jsonl \
        'not any(x in d[0]["response_text"] for x in ("sk-not", "alive", "README.md"))'
    [ -f runs/mark ] || fail "the run's folder cannot be written"
    [ ! -e mark ] && [ ! -e /usr/mark ] || fail "a file outside runs was written"
fi

end_test
