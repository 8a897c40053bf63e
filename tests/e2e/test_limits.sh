# Limits of a query and of a run: each ends what it limits under its own name, and keeps what there is.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 6; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
run() { # CODE DIR ARGS...
    code=$1 dir=$2
    shift 2
    expect_exit "$code" agent run "${AGENT:-tools}" --dataset rows.jsonl --base-url "$BASE_URL" \
        --model fake-model --output "$dir" "$@"
}

step "tokens of a query: the next call is not made"
start_fake --bench 5 --prompt-tokens 100
run 1 tokens --limit 1 --token-limit 250
assert_json tokens/traces.jsonl 'd[0]["outcome"] == "token_limit" and not d[0]["completed"] and len(d[0]["turns"]) == 3'
assert_json tokens/traces.jsonl 'd[0]["error"].startswith("--token-limit 250: 3") and d[0]["is_resolved"] is False and d[0]["unscorable_reason"] is None'
assert_json tokens/traces.jsonl 'all(t["input_tokens"] == 100 for t in d[0]["turns"]) and d[0]["total_input_tokens"] == 300'
assert_eq "$(fake_requests)" 3 "(requests)"
assert_json tokens/summary.json 'd["config"]["limits"]["query"]["tokens"] == 250 and d["config"]["limits"]["run"]["tokens"] is None'

step "turns: exactly as many"
start_fake --bench 5
run 1 turns --limit 1 --turn-limit 2
assert_json turns/traces.jsonl 'd[0]["outcome"] == "turn_limit" and len(d[0]["turns"]) == 2'
assert_eq "$(fake_requests)" 2 "(requests)"

step "a limit that is just enough changes nothing; an answer that passes one is kept and scored"
start_fake --bench 1 --prompt-tokens 100
run 0 enough --limit 1 --turn-limit 2 --token-limit 1000
assert_json enough/traces.jsonl 'd[0]["outcome"] == "answered" and d[0]["is_resolved"] is True'
run 0 last --limit 1 --token-limit 206
assert_json last/traces.jsonl 'd[0]["outcome"] == "token_limit" and d[0]["completed"] and d[0]["is_resolved"] is True'

step "wall time, and what was spent until then"
start_fake --bench 0 --delay-ms 600000
run 1 wall --limit 1 --query-timeout 2s
assert_json wall/traces.jsonl 'd[0]["outcome"] == "timeout" and d[0]["timed_out"] and d[0]["total_wall_clock_s"] >= 1.99'
assert_json wall/traces.jsonl 'd[0]["is_resolved"] is False and d[0]["turns"][0]["error"] == "cancelled"'

step "working time stands still while a retry is waited for"
cat >busy <<'CASSETTE'
status 429 Busy
header Retry-After: 1
body slow down
---
always
delay 60000
text never
CASSETTE
start_fake --script busy
run 1 working --limit 1 --working-limit 400ms --max-retries 1
assert_json working/traces.jsonl 'd[0]["outcome"] == "working_limit" and d[0]["total_wall_clock_s"] >= 1.35'

step "the same of a run; it waits only when all of its queries do"
start_fake --script busy
run 0 run-working --limit 1 --run-working-limit 400ms --max-retries 1
assert_json run-working/traces.jsonl 'd[0]["outcome"] == "run_working_limit" and d[0]["total_wall_clock_s"] >= 1.35'
assert_json run-working/summary.json 'd["status"] == "limit" and "--run-working-limit 0.4 s" in d["note"] and d["config"]["limits"]["run"]["working_s"] == 0.4'
cat >busy-one <<'CASSETTE'
when Question 1
status 429 Busy
header Retry-After: 60
body slow down
---
always
delay 60000
text never
CASSETTE
start_fake --script busy-one
run 0 run-busy --concurrency 2 --run-working-limit 400ms --max-retries 1
assert_json run-busy/traces.jsonl 'len(d) == 2 and all(q["outcome"] == "run_working_limit" for q in d)'
assert_eq "$(fake_requests)" 2 "(the one that waits is not sent again)"

step "a query works while one of its branches does, and waits when what is left of them does"
cat >branches.lua <<'LUA'
local ipw, llm = require "ipw", require "ipw.llm"
return {
  name = "branches",
  run = function(query)
    ipw.map({ 1, query.prompt:find "1" and 60 or 0.5 }, function(seconds, i)
      if i == 2 then return ipw.sleep(seconds) end
      return llm.chat { messages = { llm.user(query.prompt) } }.text
    end)
    return "42"
  end,
}
LUA
cat >busy-branch <<'CASSETTE'
always
when Question 1
status 429 Busy
header Retry-After: 60
body slow down
---
when Question 2
status 429 Busy
header Retry-After: 3
body slow down
---
always
text 42
CASSETTE
start_fake --script busy-branch
AGENT=branches.lua run 0 branches --limit 2 --concurrency 1 --working-limit 2s --max-retries 1
assert_json branches/traces.jsonl '[q["outcome"] for q in d] == ["working_limit", "answered"]'
assert_json branches/traces.jsonl 'd[1]["total_wall_clock_s"] >= 2.9'
assert_eq "$(fake_requests)" 3 "(the first one's is not sent again)"

step "a limit of nothing is refused"
for limit in cost-limit run-cost-limit energy-limit run-energy-limit query-timeout working-limit \
    run-timeout run-working-limit token-limit run-turn-limit; do
    run 2 never --$limit 0 --prices free
    one_message
    check_err "--$limit"
done

step "a run's tokens: no new query, the rest cut, and the summary says so"
start_fake --bench 0 --prompt-tokens 100
run 0 run-tokens --run-token-limit 250
assert_file_lines run-tokens/traces.jsonl 3
check_out "--run-token-limit 250"
assert_json run-tokens/summary.json 'd["status"] == "limit" and "--run-token-limit 250: 30" in d["note"]'
run 0 run-turns --run-turn-limit 2
assert_json run-turns/traces.jsonl '[q["outcome"] for q in d][:2] == ["answered"] * 2'
assert_json run-turns/traces.jsonl 'all(q["outcome"] == "run_turn_limit" and q["is_resolved"] is None for q in d[2:])'

step "a limit of the run is no excuse: whatever came to its end before it failed"
cat >refuses <<'CASSETTE'
always
status 400 Bad
json {"error":{"message":"no"}}
CASSETTE
start_fake --script refuses
run 1 run-failed --run-turn-limit 1 --max-retries 0
assert_json run-failed/traces.jsonl '[q["outcome"] for q in d] == ["error", "run_turn_limit"]'
assert_json run-failed/summary.json 'd["status"] == "limit"'

step "a run's time cuts what is in flight"
start_fake --bench 0 --delay-ms 60000
run 0 run-time --concurrency 3 --run-timeout 300ms
assert_json run-time/traces.jsonl 'len(d) == 3 and all(q["outcome"] == "run_timeout" and q["is_resolved"] is None for q in d)'
assert_json run-time/summary.json 'd["status"] == "limit"'

step "an energy limit without a sensor, or with the model elsewhere, is refused with the reason"
run 2 never --energy-limit 2kJ
one_message
check_err "cannot use --energy-limit: no energy sensor"
run 2 never --run-energy-limit 1Wh --telemetry none
check_err "switched off"
run 2 never --energy-limit 2kg
check_err "--energy-limit: '2kg' is not an energy"
[ ! -e never ] || fail "a refused run made its folder"

start_tree tree --watts-package 80 --watts-dram 20 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"

step "energy of a query: 100 W, 40 J are gone after 0.4 s"
run 1 joules --limit 1 --energy-limit 40J --sample-interval 5ms
assert_json joules/traces.jsonl 'd[0]["outcome"] == "energy_limit" and d[0]["is_resolved"] is False'
# What the limit went by is one of the ways to divide the readings, all of which the bounds hold.
assert_json joules/traces.jsonl '40 <= sum(d[0]["energy"][x]["hi"] for x in ("cpu", "dram")) + 1e-6'
assert_json joules/traces.jsonl '"J used" in d[0]["error"]'

step "energy of a run"
run 0 run-joules --run-energy-limit 0.01Wh --sample-interval 5ms
assert_json run-joules/summary.json 'd["status"] == "limit" and "--run-energy-limit 36 J" in d["note"]'
assert_json run-joules/traces.jsonl 'all(q["outcome"] == "run_energy_limit" for q in d)'

step "scripts see what they have used and what is left"
cat >watch.lua <<'LUA'
local ipw, llm, json = require "ipw", require "ipw.llm", require "ipw.json"
return {
  name = "watch",
  run = function(query)
    local before = ipw.budget()
    local reply = llm.chat { messages = { llm.user(query.prompt) } }
    ipw.sleep(0.3)
    ipw.note("seen", { before = before, after = ipw.budget(), energy = ipw.energy() })
    return reply.text
  end,
}
LUA
start_fake --bench 0 --prompt-tokens 100
AGENT=watch.lua run 0 seen --limit 1 --token-limit 1000 --turn-limit 5 --run-turn-limit 3 --query-timeout 60s \
    --energy-limit 5kJ --cost-limit 2 --prices free --sample-interval 5ms
NOTE='[e["data"] for e in d if e.get("name") == "seen"][0]'
assert_json seen/events.jsonl "(lambda n: n['before']['tokens_left'] == 1000 and 0 < n['after']['tokens_left'] < 900)($NOTE)"
assert_json seen/events.jsonl "(lambda n: n['before']['turns_left'] == 3 and n['after']['turns_left'] == 2)($NOTE)"
assert_json seen/events.jsonl "(lambda n: 59 < n['before']['seconds_left'] <= 60 and n['after']['usd_left'] == 2)($NOTE)"
assert_json seen/events.jsonl "(lambda n: 4000 < n['after']['joules_left'] < 4990)($NOTE)"
assert_json seen/events.jsonl "(lambda e: 8 < e['cpu_j'] < 400 and 'gpu_j' not in e and 'machine_j' not in e and e['until_s'] > 0.1 and e['provenance'] in ('measured', 'interpolated', 'distributed'))($NOTE['energy'])"
export IPW_POWERCAP_ROOT="$WORK/no-powercap"
AGENT=watch.lua run 0 blind --limit 1
assert_json blind/events.jsonl "(lambda n: n['energy'] == n['before'] == n['after'] and not n['energy'])($NOTE)"

end_test
