# P-5: a run that is stopped and goes on (a laptop's lid, a debugger): the gap is on record, no joule is
# lost or made up.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"
awk 'BEGIN { for (i = 1; i <= 12; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

step "P-5: SIGSTOP, and CONT a while later"
start_fake --bench 2 --delay-ms 60
"$IPW_AGENT" run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms \
    --output stopped -q >out 2>err </dev/null &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
await_lines stopped/traces.jsonl
kill -STOP $AGENT_PID
sleep 1.5
kill -CONT $AGENT_PID
wait $AGENT_PID
assert_eq $? 0 "(exit code)"
assert_json stopped/events.jsonl 'any(e["event"] == "note" and e["name"] == "sensor_gap" and e["data"]["to_ns"] - e["data"]["from_ns"] >= 1000000000 for e in d)'
assert_json stopped/traces.jsonl 'len(d) == 12 and all(q["completed"] for q in d)'
assert_json stopped/summary.json 'd["ledger"]["cpu"]["balanced"] is True'
expect_exit 0 agent ledger stopped --check

step "P-5: stopped before its first query: the gap is this session's, behind its run_start"
"$IPW_AGENT" run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms \
    --baseline 1s --output early -q >out 2>err </dev/null &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
tries=0
until [ -s early/manifest.json ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the run did not begin"
    sleep 0.02
done
kill -STOP $AGENT_PID
sleep 1
kill -CONT $AGENT_PID
wait $AGENT_PID
assert_eq $? 0 "(exit code)"
assert_json early/events.jsonl 'd[0]["event"] == "run_start" and any(e["event"] == "note" and e.get("name") == "sensor_gap" for e in d)'
expect_exit 0 agent validate early
expect_exit 0 agent ledger early --check

step "P-5: the loop stood still while a script computed: those that had ended by then keep their joules"
awk 'BEGIN { for (i = 1; i <= 8; i++) printf "{\"question\":\"%s %d?\",\"answer\":\"42\"}\n", i == 5 ? "burn" : "rest", i }' >burn.jsonl
cat >burn.lua <<'EOF'
local llm = require "ipw.llm"
return { name = "burn", run = function(query)
  llm.chat { messages = { llm.user(query.prompt) } }
  local begun = os.time()
  while query.prompt:find "burn" and os.time() - begun < 5 do end
  return "42"
end }
EOF
stop_fake
start_fake --bench 0
expect_exit 0 agent run burn.lua --dataset burn.jsonl --base-url "$BASE_URL" --model fake-model --concurrency 8 \
    --lua-cpu 20s --output burnt
assert_json burnt/traces.jsonl 'len(d) == 8 and all(q["outcome"] == "answered" and q["energy"]["cpu"]["joules"] is not None for q in d)'
assert_json burnt/summary.json 'd["ledger"]["cpu"]["balanced"] is True'

step "P-5: the program is replaced and then removed while it runs: its tools are started by the one that began"
cat >calls.lua <<'EOF'
local llm, proc = require "ipw.llm", require "ipw.proc"
return { name = "calls", run = function(query)
  llm.chat { messages = { llm.user(query.prompt) } }
  local result, why = proc.run { "echo", "42" }
  return result and result.stdout or why
end }
EOF
stop_fake
start_fake --bench 0 --delay-ms 300
cp "$IPW_AGENT" agent
./agent run calls.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output replaced -q \
    >out 2>err </dev/null &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
await_lines replaced/traces.jsonl
printf '#!/bin/sh\nexit 9\n' >other
chmod +x other
mv other agent
until [ "$(wc -l <replaced/traces.jsonl)" -ge 6 ] || ! kill -0 $AGENT_PID 2>/dev/null; do sleep 0.02; done
rm agent
wait $AGENT_PID
assert_eq $? 0 "(exit code)"
assert_json replaced/traces.jsonl 'len(d) == 12 and all(q["is_resolved"] for q in d)'

end_test
