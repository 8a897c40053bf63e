# ipw.event: a stretch that a script names is a span with joules of its own: in the trace, in replay, and
# in the ledger when it is computed again.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"

cat >agent.lua <<'EOF'
local ipw, llm = require "ipw", require "ipw.llm"

return {
  name = "eventful",
  run = function(query)
    local hits = ipw.event("retrieve", { k = 5 }, function()
      ipw.sleep(0.2)
      return 5
    end)
    local reply
    do
      local span <close> = ipw.event "answer"
      reply = llm.chat { messages = { llm.user(query.prompt) } }
      span:finish("ok", { hits = hits })
    end
    local ok, why = pcall(ipw.event, "broken", function() error "no such book" end)
    assert(not ok and why:find "no such book")
    ipw.event "left open"
    return reply.text
  end,
}
EOF
printf '{"question":"Question %d?","answer":"42"}\n' 1 2 3 >rows.jsonl
start_fake --bench 2 --delay-ms 20

step "spans with joules"
expect_exit 0 agent run agent.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --output run
assert_json run/traces.jsonl "[(s['kind'], s['name'], s['outcome']) for s in d[0]['spans_before']] == [('event', 'retrieve', 'ok'), ('event', 'answer', 'ok')]"
assert_json run/traces.jsonl "all(q['num_turns'] == 1 and q['total_tool_calls'] == 0 for q in d)"
assert_json run/traces.jsonl "[(s['kind'], s['name'], s['outcome']) for s in d[0]['turns'][0]['spans'] if s['kind'] == 'event'] == [('event', 'broken', 'error'), ('event', 'left open', 'unfinished')]"
assert_json run/traces.jsonl "'no such book' in [s for s in d[0]['turns'][0]['spans'] if s['name'] == 'broken'][0]['error']"
# The fake package draws 80 W all the time: each span's joules are what its counter moved by.
assert_json run/traces.jsonl "all(s['energy']['cpu']['joules'] is not None for q in d for s in q['spans_before'])"
truth books run

step "what the script said is in the record"
assert_json run/events.jsonl "[e['data'] for e in d if e['event'] == 'span_start' and e['name'] == 'retrieve'] == [{'k': 5}] * 3"
assert_json run/events.jsonl "[e['data'] for e in d if e['event'] == 'span_end' and e['name'] == 'answer'] == [{'hits': 5}] * 3"
assert_json run/events.jsonl "all(e['kind'] == 'event' and e['span'] > 0 for e in d if e['event'].startswith('span_'))"

step "the ledger gives the same joules again, and replay shows them"
expect_exit 0 agent ledger run --check
check_out "3 of 3 queries are identical to the run, byte for byte."
expect_exit 0 agent replay run
check_out "before the first turn"
assert_matches "$WORK/out" 'event .*retrieve: ok'
assert_matches "$WORK/out" 'event .*broken: error'
check_out 'no such book'
check_out '{"k":5}'

step "data that is no object, and names of the program's own notes, are refused where they stand"
cat >wrong.lua <<'EOF'
local ipw, json = require "ipw", require "ipw.json"
local span = ipw.event "mine"
local wrong = {
  list = function() ipw.event("e", { 1, 2 }) end,
  marked = function() ipw.event("e", json.list {}) end,
  number = function() ipw.event("e", 5) end,
  finish = function() span:finish("ok", { 1 }) end,
  word = function() span:finish("ok", "done") end,
  note = function() ipw.note("n", { 1 }) end,
  note_text = function() ipw.note("n", "text") end,
}
return { name = "wrong", run = function()
  for what, call in pairs(wrong) do
    local ok, why = pcall(call)
    assert(not ok and tostring(why):find "^wrong.lua:%d+: ipw.%a+: data: expected a table of names and values", what)
  end
  for _, name in ipairs { "booked", "first_token", "suspend", "sensor_lost", "script", "concurrency" } do
    local ok, why = pcall(function() ipw.note(name, { channel = "package-0" }) end)
    assert(not ok and tostring(why):find("^wrong.lua:%d+: ipw.note: '" .. name .. "' is the name of a note of the program"), name)
  end
  ipw.note("n", {})
  ipw.note "malformed"
  ipw.event("e", { list = { 1, 2 }, null = json.null }, function() end)
  span:finish() -- what was refused has not ended it
  return "42"
end }
EOF
expect_exit 0 agent run wrong.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output wrong
assert_json wrong/traces.jsonl "[(s['name'], s['outcome']) for s in d[0]['spans_before']] == [('mine', 'ok'), ('e', 'ok')]"
expect_exit 0 agent replay wrong --mode hermetic --agent wrong.lua --output again

end_test
