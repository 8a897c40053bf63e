# A run that was taken up again, replayed in one session: each query as it was begun last, each request
# as its last attempt was answered; and watched while it goes on behind the end of an earlier session.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 3; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
cat >fails.txt <<'CASSETTE'
when Question 2
always
status 400 Bad
json {"error":{"message":"no"}}
---
when Question 3
status 503 Busy
body busy
---
always
text FINAL ANSWER: 42
CASSETTE

step "the record: one query failed, and was answered in a second session"
start_fake --script fails.txt
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --max-retries 1 \
    --warmup 1 --output run -q
stop_fake
start_fake --bench 0
expect_exit 0 agent resume run --rerun failed --base-url "$BASE_URL" -q
stop_fake
assert_json run/events.jsonl '[e["query"] for e in d if e["event"] == "query_start"] == [0, 1, 2, 3, 0, 2]'

assert_json run/traces.jsonl '[(q["turns"][0]["attempts"], q["completed"]) for q in d if q["query_id"] == "q0002"] == [(2, True)]'

step "its decisions again, each query once, without the attempts that failed"
expect_exit 0 agent replay run --mode tools -o tools
check_out "replayed 4 queries, 4 turns"
assert_json tools/events.jsonl '[e["query"] for e in d if e["event"] == "query_start"] == [1, 3, 0, 2]'
assert_json tools/events.jsonl '[e["event"] for e in d if e["event"].startswith("run_")] == ["run_start", "run_end"] and d[-1]["event"] == "run_end"'
assert_json tools/traces.jsonl 'sorted((q["query_id"], len(q["turns"]), q["completed"]) for q in d) == [("q0000", 1, True), ("q0001", 1, True), ("q0002", 1, True)]'
assert_json tools/summary.json 'd["status"] == "complete" and d["totals"]["queries"] == 3'

step "one of them"
expect_exit 0 agent replay run --mode hermetic --query q0001 -o one
assert_json one/traces.jsonl '[(q["query_id"], len(q["turns"]), q["outcome"]) for q in d] == [("q0001", 1, "answered")]'

step "hermetic, it is the record with both of its sessions"
expect_exit 0 agent replay run --mode hermetic -o again
for file in events.jsonl traces.jsonl attempts.jsonl warmup.jsonl; do
    cmp run/$file again/$file || fail "$file differs"
done

step "a last session that was cut down is not the end, whatever one before it came to"
cp -r run cut
python3 - <<'PY' || fail "edit"
import json
lines = open("cut/events.jsonl").read().splitlines(True)
open("cut/events.jsonl", "w").writelines(line for line in lines[:-1])
assert json.loads(lines[-1])["event"] == "run_end"
PY
damaged cut again-cut
expect_exit 0 agent replay cut --mode hermetic -o again-cut
assert_json again-cut/summary.json 'd["status"] == "interrupted"'

step "who watches a run that is taken up again sees it to its end"
mkdir live
python3 - <<'PY' || fail "edit"
import json
lines = open("run/events.jsonl").read().splitlines(True)
last = [i for i, line in enumerate(lines) if json.loads(line)["event"] == "query_start"][-1]
open("live/events.jsonl", "w").writelines(lines[:last + 1])
open("rest", "w").writelines(lines[last + 1:])
PY
damaged live
exec 9<>live/lock && flock 9
"$IPW_AGENT" replay live --follow >watched &
watcher=$!
FAKES="$FAKES $watcher"
tries=0
until [ "$(grep -c 'Question 2' watched)" = 2 ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the second session does not begin"
    sleep 0.05
done
sleep 0.5
kill -0 $watcher 2>/dev/null || fail "it went away while the run goes on"
cat rest >>live/events.jsonl
wait $watcher || fail "the watcher"
FAKES=$(echo "$FAKES" | sed "s/ $watcher\$//")
exec 9>&-
assert_eq "$(grep -c 'answered' watched)" 5 "(answers)"

step "calls side by side that were repeated in another order than they began"
cat >side.lua <<'LUA'
local ipw, llm = require "ipw", require "ipw.llm"
return {
  name = "side",
  run = function(query)
    return table.concat(ipw.map({ "Aaa", "Bbb", "Ccc" }, function(word)
      return llm.chat { messages = { llm.user(word .. query.prompt) } }.text
    end), " ")
  end,
}
LUA
cat >busy.txt <<'CASSETTE'
when Aaa
status 503 Busy
header Retry-After: 2
body busy
---
when Bbb
status 503 Busy
header Retry-After: 1
body busy
---
when Aaa
text first
---
when Bbb
text second
---
when Ccc
text third
CASSETTE
start_fake --script busy.txt
expect_exit 0 agent run side.lua --dataset rows.jsonl --limit 1 --base-url "$BASE_URL" --model fake-model -o side -q
stop_fake
assert_json side/events.jsonl '[e["data"]["messages"][-1]["content"][:3] for e in d if e["event"] == "lm_inference_start"] == ["Aaa", "Bbb", "Ccc", "Bbb", "Aaa"]'
expect_exit 0 agent replay side --mode hermetic --agent side.lua -o side-again
cmp side/events.jsonl side-again/events.jsonl || fail "events differ"
expect_exit 0 agent replay side --mode tools --agent side.lua -o side-tools
assert_json side-tools/traces.jsonl 'd[0]["response_text"] == "first second third" and [t["attempts"] for t in d[0]["turns"]] == [1, 1, 1]'

step "what a limit ended in the middle of a reply or of a tool ends there again"
cat >wait.lua <<'LUA'
return {
  name = "wait",
  about = "Never comes back.",
  input = {},
  run = function() require("ipw").sleep(3600) end,
}
LUA
cat >stalls.txt <<'CASSETTE'
when Question 1
text begun
stall
---
when Question 2
call wait {}
---
always
text FINAL ANSWER: 42
CASSETTE
start_fake --script stalls.txt
expect_exit 0 agent run tools --tools "$WORK/wait.lua" --dataset rows.jsonl --query-timeout 1s --base-url "$BASE_URL" \
    --model fake-model -o ended -q
stop_fake
assert_json ended/traces.jsonl '[q["outcome"] for q in d] == ["timeout", "timeout", "answered"]'
for mode in hermetic tools; do
    expect_exit 0 agent replay ended --mode $mode --tools "$WORK/wait.lua" -o ended-$mode
    assert_json ended-$mode/traces.jsonl '[q["outcome"] for q in d] == ["timeout", "timeout", "answered"]'
done

end_test
