# Agent files that are missing, broken, or raise.
. "$(dirname "$0")/lib.sh"

start_fake --bench 1
rows='{"question":"What is 1 + 1?","answer":"42"}'
printf '%s\n' "$rows" >one.jsonl

step "a missing agent file"
expect_exit 2 agent run nowhere/mine.lua --dataset one.jsonl --base-url "$BASE_URL" \
    --model fake-model --output out1
check_err nowhere/mine.lua
one_message
[ ! -e out1/traces.jsonl ] || fail "a run was begun"

step "a misspelt agent name is answered with the nearest"
expect_exit 2 agent run raect --dataset one.jsonl --base-url "$BASE_URL" --model fake-model
check_err raect
offers react

step "no agent at all"
expect_exit 2 agent run --dataset one.jsonl --base-url "$BASE_URL" --model fake-model

step "a Lua syntax error: file and line"
printf 'return {\n  name = "broken",\n  run = function(query\n    return "x"\n  end,\n}\n' >broken.lua
expect_exit 3 agent run broken.lua --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output out2
check_err broken.lua:4
one_message
[ ! -e out2/traces.jsonl ] || fail "a run was begun"

step "an agent file that raises when it is loaded"
printf 'local t = nil\nreturn t.x\n' >raises_early.lua
expect_exit 3 agent run raises_early.lua --dataset one.jsonl --base-url "$BASE_URL" \
    --model fake-model
check_err raises_early.lua:2

step "a misspelt field is said, once; the run goes on"
printf 'return {\n  name = "slip", defalts = { max_turns = 3 }, run = function() return "42" end,\n}\n' >slip.lua
expect_exit 0 agent run slip.lua --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --output slip
assert_eq "$(grep -c "slip.lua: no agent has a field 'defalts' (did you mean 'defaults'?): it does nothing" err)" 1
for agent in react single tools; do
    expect_exit 0 agent run $agent --dataset one.jsonl --model demo --output good-$agent
    no_err "no agent has"
done

step "a file that returns no agent"
printf 'return 42\n' >number.lua
expect_exit 3 agent run number.lua --dataset one.jsonl --base-url "$BASE_URL" --model fake-model
check_err number.lua

step "an agent that raises: that query fails with its turns kept, the run goes on"
cat >raises.lua <<'LUA'
local llm, tools = require "ipw.llm", require "ipw.tools"
return {
  name = "raises",
  defaults = { tools = { "calculator" } },
  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    local thread = { llm.user(query.prompt) }
    local reply = llm.chat { messages = thread, tools = kit.schemas }
    thread[#thread + 1] = reply.message
    for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
    if query.prompt:find("raise", 1, true) then
      error("boom of the agent")
    end
    return llm.chat({ messages = thread, tools = kit.schemas }).text
  end,
}
LUA
cat >three.jsonl <<'ROWS'
{"question":"What is 1 + 1?","answer":"42"}
{"question":"Please raise.","answer":"42"}
{"question":"What is 3 + 1?","answer":"42"}
ROWS
expect_exit 0 agent run raises.lua --dataset three.jsonl --base-url "$BASE_URL" \
    --model fake-model --output out3
assert_file_lines out3/traces.jsonl 3
assert_json out3/traces.jsonl '[q["completed"] for q in sorted(d, key=lambda q: q["query_id"])] == [True, False, True]'
assert_json out3/traces.jsonl '[len(q["turns"]) for q in sorted(d, key=lambda q: q["query_id"])] == [2, 1, 2]'
assert_json out3/traces.jsonl '[q["turns"][0]["tools_called"] for q in d] == [["calculator"]] * 3'
assert_json out3/traces.jsonl '[q["turns"][0]["input_tokens"] for q in d] == [100] * 3'
assert_contains out3/traces.jsonl "boom of the agent"
assert_contains out3/traces.jsonl "raises.lua:12"
assert_contains err "raises.lua:12"
assert_eq "$(fake_requests)" 5 "(requests)"

step "every query fails: exit 1, all of them recorded"
printf 'return { name = "never", run = function() error("always so") end }\n' >never.lua
expect_exit 1 agent run never.lua --dataset three.jsonl --base-url "$BASE_URL" \
    --model fake-model --output out4
assert_file_lines out4/traces.jsonl 3
assert_json out4/traces.jsonl 'not any(q["completed"] for q in d)'
check_err "always so"
[ -f out4/summary.json ] || fail "no summary"

step "misspelt options"
expect_exit 2 agent run raises.lua --datasett three.jsonl
check_err --datasett
offers --dataset
expect_exit 2 agent rum raises.lua
offers run
expect_exit 2 agent run raises.lua --dataset three.jsonl --concurrency nine
check_err --concurrency
check_err nine

end_test
