# What differs from run to run (clocks, children, files, random numbers, the order of a table, who
# comes first) is on record: an agent that tells the model all of it is replayed byte for byte.
# Parallel calls that the record has in another order are told; tools can be real.
. "$(dirname "$0")/lib.sh"

cat >world.lua <<'LUA'
local ipw, llm, tools = require "ipw", require "ipw.llm", require "ipw.tools"
local fs, proc = require "ipw.fs", require "ipw.proc"
local calls = 0
-- Part of the agent: it runs again, and its clock is answered.
local counter = { name = "counter", about = "Counts.", input = {},
  run = function() calls = calls + 1; return ("call %d at %.9f"):format(calls, ipw.now()) end }
return {
  name = "world",
  defaults = { max_turns = 4, tools = { "python", "calculator" } },
  run = function(query, cfg)
    local kit <close> = tools.open { "python", "calculator", counter }
    fs.write("a.txt", "hello")
    local facts = { now = ipw.now(), time = os.time(), clock = os.clock(), date = os.date(),
      random = math.random(1, 1 << 30), dir = fs.workspace(), size = fs.size("a.txt"),
      text = fs.read("a.txt"), none = select(2, fs.read("none.txt")),
      list = table.concat(fs.list(), ","), left = tostring(ipw.budget().turns_left) }
    math.randomseed()
    facts.random2 = math.random(1, 1 << 30)
    ipw.sleep(0.001)
    local child = proc.run { "sh", "-c", "echo $$; printf '\\377\\0x'; cat /proc/uptime" }
    facts.child = child.stdout:gsub("[^%w]", "?") .. #child.stdout
    local parts = {}
    for k, v in pairs(facts) do parts[#parts + 1] = k .. "=" .. tostring(v) end
    local thread = { llm.user(query.prompt .. "\n" .. table.concat(parts, "\n")) }
    local got = ipw.map({ "a", "b", "c" }, function(word, i)
      ipw.sleep(0.002 * (4 - i))
      local reply = llm.chat { messages = { llm.user(word .. ipw.now()) } }
      return reply.text .. kit:invoke("counter", {}) ..
        kit:invoke("python", { code = "import os, time; print(os.getpid(), time.time())" })
    end)
    thread[#thread + 1] = llm.assistant(table.concat(got, " | "))
    thread[#thread + 1] = llm.user(kit:invoke("calculator", { expression = "6 * 7" }))
    local ok, err = pcall(llm.chat, { messages = { llm.user "fail please" } })
    thread[#thread + 1] = llm.user(("%s %s %s %s"):format(ok, err.code, err.status, err.retryable))
    ipw.note("seen", { n = calls })
    if query.prompt == "stop" then return nil, "enough" end
    if query.prompt == "raise" then error("by design") end
    return llm.chat { messages = thread, tools = kit.schemas }.text
  end,
}
LUA
cat >world.llm <<'LLM'
when fail please
always
status 400
json {"error":{"message":"no such thing"}}
---
when say 429
status 429
header retry-after-ms: 20
json {"error":{"message":"busy"}}
---
when stream_options
status 400
json {"error":{"message":"stream_options is not known"}}
---
always
text it is so
LLM
for question in one 'say 429' stop raise five; do
    printf '{"question":"%s","answer":"it is so"}\n' "$question"
done >q.jsonl

step "everything at once"
start_fake --script world.llm
expect_exit 0 agent run world.lua --dataset q.jsonl --model fake-model --base-url "$BASE_URL" \
    --concurrency 3 --seed 7 -o world -q
stop_fake
assert_json world/events.jsonl 'sum(e["event"] == "lm_inference_end" and e["will_retry"] for e in d) >= 2'
assert_json world/events.jsonl 'any((e.get("data") or {}).get("name") == "effect" for e in d)'
expect_exit 0 agent replay world --mode hermetic --agent world.lua -o again
check_out "5 queries"
check_out "identical to the saved run"
cmp world/events.jsonl again/events.jsonl || fail "events differ"
cmp world/traces.jsonl again/traces.jsonl || fail "traces differ"
[ ! -e again/workspaces ] || fail "workspaces left"
expect_exit 0 agent replay again --mode hermetic --agent world.lua -o third
cmp world/events.jsonl third/events.jsonl || fail "a replay's replay differs"

step "one of them"
expect_exit 0 agent replay world --mode hermetic --agent world.lua --query 2 -o third2
assert_json third2/traces.jsonl 'len(d) == 1 and d[0]["query_id"] == "q0002"'
expect_exit 3 agent replay world --mode hermetic --agent world.lua --query q0012 -o none
check_err 'there is no query "q0012"; did you mean "q000'
[ ! -e none ] || fail "a folder was made"
expect_exit 0 agent replay world --query q0003
check_out "raise"
expect_exit 3 agent replay world --query q
check_err "several queries begin with"

step "parallel calls"
cat >pair.llm <<'LLM'
call calculator {"expression": "1 + 1"}
call calculator {"expression": "2 + 2"}
---
text done
LLM
printf '{"question":"both","answer":"done"}\n' >one.jsonl
start_fake --script pair.llm
expect_exit 0 agent run tools --dataset one.jsonl --model fake-model --base-url "$BASE_URL" -o pair -q
stop_fake
expect_exit 0 agent replay pair --mode hermetic -o pair2
damaged pair
cat >swap.py <<'PY'
import json
lines = open("pair/events.jsonl").read().split("\n")[:-1]
i, j = [k for k, l in enumerate(lines) if json.loads(l)["event"] == "tool_call_start"]
lines[i], lines[j] = lines[j], lines[i]
open("pair/events.jsonl", "w").write("\n".join(lines) + "\n")
PY
python3 swap.py
expect_exit 4 agent replay pair --mode hermetic -o pair3
check_err "query q0000 (0), turn 1: the agent does something else"
check_err 'tool_call_start calculator, span 3 {"expression":"2 + 2"}'
check_err 'now     tool_call_start calculator, span 2 {"expression":"1 + 1"}'

step "real tools"
cat >clock.lua <<'LUA'
return { name = "clock", about = "The time.", input = {}, run = function() return tostring(require("ipw").now()) end }
LUA
cat >real.llm <<'LLM'
call calculator {"expression": "1 + 1"}
call clock {}
---
when say 429
status 429
header retry-after-ms: 10
json {"error":{"message":"busy"}}
---
text done
LLM
start_fake --script real.llm
expect_exit 0 agent run tools --path . --tools calculator,./clock.lua --dataset one.jsonl --model fake-model \
    --base-url "$BASE_URL" -o real -q
stop_fake
expect_exit 0 agent replay real --mode hermetic --tools calculator,./clock.lua -o real2
expect_exit 4 agent replay real --mode tools --tools calculator,./clock.lua -o real3
check_out "tool results: 1 the same, 1 different, 0 missing"
check_err "tool clock, span 3, gives something else"
assert_json real3/replay.json 'd["tool_results"] == {"same": 1, "different": 1, "missing": 0}'
assert_json real3/traces.jsonl 'd[0]["is_resolved"] is True and len(d[0]["turns"]) == 2'
assert_json real3/traces.jsonl 'd[0]["energy"]["gpu"]["joules"] is None and d[0]["energy"]["gpu"]["reason"] == "replayed"'
expect_exit 0 agent replay pair2 --mode tools -o pair4
check_out "the decisions of the saved run"

step "on against a model"
cat >live.llm <<'LLM'
always
text done
LLM
sed 's/llm.user(prompt.question(query))/llm.user(prompt.question(query) .. " Now.")/' "$IPW_SOURCE_DIR/agents/tools.lua" >changed.lua
start_fake --script live.llm
expect_exit 4 agent replay pair2 --mode hermetic --agent changed.lua --from-divergence live \
    --base-url "$BASE_URL" --model fake-model -o live
assert_eq "$(fake_requests)" 1 "(requests)"
assert_contains "$FAKE_LOG" fake-model
stop_fake
check_out "1 query diverged and went on against the model"
check_err "message 2 (user) of the request differs"
assert_json live/traces.jsonl 'd[0]["outcome"] == "answered" and d[0]["response_text"] == "done"'
expect_exit 2 agent replay pair2 --mode hermetic --from-divergence live -o live2
check_err "--base-url"

step "what an agent cut in the middle of a character comes out as the record has it"
cat >halves.lua <<'EOF'
return { name = "halves", run = function(query)
  local half = ("caf\u{e9}"):sub(1, 4)
  if query.prompt == "answer" then return half end
  if query.prompt == "outcome" then return nil, half end
  error(half)
end }
EOF
printf '{"question":"answer"}\n{"question":"outcome"}\n{"question":"error"}\n' >halves.jsonl
expect_exit 0 agent run halves.lua --dataset halves.jsonl --model demo --output halves
assert_json halves/traces.jsonl "'caf\ufffd' in (d[0]['response_text'], d[1]['outcome']) and 'caf\ufffd' in d[2]['error']"
expect_exit 0 agent replay halves --mode hermetic --agent halves.lua --dataset halves.jsonl -o halves-again

end_test
