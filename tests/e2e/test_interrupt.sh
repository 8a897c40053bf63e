# P-2, P-3, P-4: what signals do to a run.  What is finished stays, turns may end for a grace, the run is
# marked; the second signal is obeyed at once; what was ignored at the start stays ignored.
# Sanitizer: what is freed when a run is cut short.
. "$(dirname "$0")/lib.sh"

cat >three.jsonl <<'ROWS'
{"question":"First: what is 1 + 1?","answer":"42"}
{"question":"Second: what is 2 + 2?","answer":"42"}
{"question":"Third: what is 3 + 3?","answer":"42"}
ROWS
cat >stall.txt <<'CASSETTE'
when First
always
text FINAL ANSWER: 42
---
always
text begun
stall
CASSETTE

# begin OUT ARGS...: the agent in the background, until the server has its second request.  (A shell
# starts background jobs with SIGINT ignored; env gives the default back.)
begin() {
    out=$1
    shift
    [ -n "${BASE_URL-}" ] || start_fake --script stall.txt
    before=$(fake_requests)
    ${WITH-env --default-signal=INT} ${IPW_WRAP-} "$IPW_AGENT" run single --dataset three.jsonl --base-url "$BASE_URL" \
        --model fake-model --output "$out" "$@" >out 2>err </dev/null &
    AGENT_PID=$!
    FAKES="$FAKES $AGENT_PID"
    tries=0
    until [ "$(fake_requests)" -ge $((before + 2)) ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "the second request did not come"
        kill -0 $AGENT_PID 2>/dev/null || fail "the agent ended early"
        sleep 0.1
    done
}

# ends CODE: the agent does, with that status.
ends() {
    wait $AGENT_PID
    assert_eq $? "$1" "(exit code)"
    FAKES=$(echo "$FAKES" | sed "s/ $AGENT_PID\$//")
}

step "P-2: SIGINT once: no new query, then the turn is cut"
begin once --grace 0.3s
kill -INT $AGENT_PID
ends 130
match_err "interrupted: 1 turn may end, for 0.3 s"
assert_json once/traces.jsonl '[(q["query_id"], q["outcome"]) for q in d] == [("q0000", "answered"), ("q0001", "interrupted")]'
assert_json once/traces.jsonl 'd[1]["turns"][0]["spans"][0]["outcome"] == "cancelled"'
assert_json once/summary.json 'd["status"] == "interrupted" and d["totals"]["queries"] == 2 and d["run"]["planned"] == 3'
assert_json once/manifest.json 'd["segments"][0]["end"] == "interrupted"'
assert_contains "$FAKE_LOG" gone
[ ! -e once/lock ] || fail "the lock was left"
assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume once"
# It is counted as interrupted: neither as done nor as failed.
assert_json once/summary.json 'd["totals"]["interrupted"] == 1 and d["totals"]["failed"] == 0 and d["failed"] == {} and d["interrupted"] == {"interrupted": 1}'
check_out "interrupted: 1 of 3 queries done"
assert_lacks out "failed"
assert_lacks out "interrupted: interrupted"

step "P-2: a turn that ends within the grace is kept; the next is not begun"
cat >slow.txt <<'CASSETTE'
when First
text FINAL ANSWER: 42
---
when Second
delay 2500
text FINAL ANSWER: 42
CASSETTE
stop_fake
start_fake --script slow.txt
begin graceful
kill -TERM $AGENT_PID
ends 143
assert_json graceful/traces.jsonl '[(q["query_id"], q["outcome"]) for q in d] == [("q0000", "answered"), ("q0001", "answered")]'
assert_json graceful/summary.json 'd["status"] == "interrupted"'
stop_fake
BASE_URL=

step "P-3: the second signal is obeyed at once, and what was finished goes on"
begin "twi ce" --grace 20m
kill -INT $AGENT_PID
tries=0
until grep -q "may end" err; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the first signal was not noticed"
    sleep 0.1
done
kill -INT $AGENT_PID
ends 130
assert_contains err "stopped at once"
assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume 'twi ce'"
mv "twi ce" twice
assert_json twice/traces.jsonl '[q["query_id"] for q in d] == ["q0000"]'
stop_fake
BASE_URL=
start_fake --bench 0
expect_exit 0 agent resume twice --base-url "$BASE_URL"
assert_json twice/traces.jsonl '[q["query_id"] for q in d] == ["q0000", "q0001", "q0002"] and all(q["completed"] for q in d)'
assert_json twice/attempts.jsonl '[(q["query_id"], q["superseded"], q["segment"]) for q in d] == [("q0001", "cut", 0)]'
stop_fake
BASE_URL=

step "P-3: twice before any query had ended, too"
cat >silent.txt <<'CASSETTE'
always
stall
CASSETTE
start_fake --script silent.txt
env --default-signal=INT "$IPW_AGENT" run single --dataset three.jsonl --base-url "$BASE_URL" \
    --model fake-model --output nothing -q >out 2>err </dev/null &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
until [ "$(fake_requests)" -ge 1 ]; do sleep 0.05; done
kill -INT $AGENT_PID
sleep 0.2
kill -INT $AGENT_PID
ends 130
assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume nothing"
stop_fake
BASE_URL=

step "P-3: before the first query, while the idle machine is measured"
printf '#!/bin/sh\nwhile :; do echo 50; sleep 0.05; done\n' >meter
chmod +x meter
start_fake --bench 0
env --default-signal=INT "$IPW_AGENT" run single --dataset three.jsonl --base-url "$BASE_URL" --telemetry exec=./meter \
    --model fake-model --output idle --baseline 60s >out 2>err </dev/null &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
await_lines idle/manifest.json
sleep 0.2
kill -INT $AGENT_PID
ends 130
assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume idle"
expect_exit 0 agent resume idle --baseline 100ms
assert_json idle/traces.jsonl 'len(d) == 3 and all(q["completed"] for q in d)'
stop_fake
BASE_URL=

step "what failed by itself is part of the command that goes on"
cat >half.txt <<'CASSETTE'
when First
always
status 400
json {"error":{"message":"no"}}
---
always
text begun
stall
CASSETTE
start_fake --script half.txt
begin half --grace 0s
kill -INT $AGENT_PID
ends 130
assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume half --rerun failed"
stop_fake
start_fake --bench 0
expect_exit 0 agent resume half --rerun failed --base-url "$BASE_URL"
assert_json half/traces.jsonl 'len(d) == 3 and all(q["completed"] for q in d)'
stop_fake
BASE_URL=

step "P-4: SIGHUP is as TERM"
begin hung_up --grace 0s
kill -HUP $AGENT_PID
ends 129
assert_json hung_up/traces.jsonl 'd[1]["outcome"] == "interrupted"'

step "P-4: under nohup it is ignored, and so is the INT of a shell's background job"
WITH="nohup env --ignore-signal=INT" begin nohup --grace 0s
kill -HUP $AGENT_PID
kill -INT $AGENT_PID
sleep 0.3
kill -0 $AGENT_PID || fail "it was ended by a signal that it was started to ignore"
no_err interrupted
kill -TERM $AGENT_PID
ends 143
stop_fake
BASE_URL=

step "SIGKILL: the finished query is on disk"
begin killed
kill -KILL $AGENT_PID
wait $AGENT_PID
assert_json killed/traces.jsonl '[q["query_id"] for q in d] == ["q0000"] and d[0]["completed"]'
expect_exit 0 agent replay killed
check_out q0000

end_test
