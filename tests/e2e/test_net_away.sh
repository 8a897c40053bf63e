# A server that dies in the middle of a run: the run waits for it, goes on when it is back, and stops
# with the command that goes on when it does not come back.  No query is lost to it.
. "$(dirname "$0")/lib.sh"

seq 1 40 | sed 's/.*/{"question":"What is & + &?","answer":"42"}/' >forty.jsonl
head -12 forty.jsonl >twelve.jsonl

# begin OUT ARGS...: the agent in the background, until the server has had twelve requests.
begin() {
    out=$1
    shift
    "$IPW_AGENT" run single --dataset forty.jsonl --base-url "$BASE_URL" --output "$out" "$@" \
        >out 2>err </dev/null &
    AGENT_PID=$!
    FAKES="$FAKES $AGENT_PID"
    tries=0
    until [ "$(fake_requests)" -ge 12 ]; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "the requests did not come"
        sleep 0.02
    done
}

kill_fake() {
    kill -KILL "$FAKE_PID"
    wait "$FAKE_PID" 2>/dev/null
    FAKES=$(echo "$FAKES" | sed "s/ $FAKE_PID\$//; s/ $FAKE_PID / /")
}

await_err() {
    tries=0
    until grep -q "$1" err; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail "'$1' was not said"
        kill -0 $AGENT_PID 2>/dev/null || fail "the agent ended early"
        sleep 0.02
    done
}

ends() {
    wait $AGENT_PID
    assert_eq $? "$1" "(exit code)"
    FAKES=$(echo "$FAKES" | sed "s/ $AGENT_PID\$//; s/ $AGENT_PID / /")
}

all_answered() {
    assert_json "$1/traces.jsonl" 'sorted(q["query_id"] for q in d) == ["q%04d" % i for i in range(40)] and all(q["completed"] for q in d)'
    expect_exit 0 agent validate "$1"
    expect_exit 0 agent ledger "$1" --check
}

# Replies of half a second, word by word: most of them are cut in the middle.
cat >slowly <<'C'
always
itl 50
text one two three four five six seven eight FINAL ANSWER: 42
C

for way in "back-1 --bench 0 --delay-ms 40 -- --concurrency 1" \
    "back-8 --bench 0 --delay-ms 40 -- --concurrency 8 --max-retries 0" \
    "back-cut --script slowly -- --concurrency 4" \
    "back-cut-0 --script slowly -- --concurrency 8 --max-retries 0"; do
    name=${way%% *}
    server=${way#* }
    # shellcheck disable=SC2086
    set -- ${server#*-- }
    server=${server%% -- *}
    step "$name: killed and brought back in mid-run: every query is answered"
    # shellcheck disable=SC2086
    start_fake $server
    begin "$name" "$@"
    kill_fake
    await_err "no server answers: the run waits"
    # shellcheck disable=SC2086
    start_fake $server --port "$FAKE_PORT"
    ends 0
    no_err "failed: "
    match_err "the server answers again after [0-9.]+ s; the run continues"
    all_answered "$name"
    [ ! -e "$name/attempts.jsonl" ] || fail "$name: a query was begun anew"
    # The wait is between two attempts of a turn, and nobody's time.
    assert_json "$name/traces.jsonl" 'any(t["retry_wait_s"] > 0 for q in d for t in q["turns"]) and all(t["retry_wait_s"] + t["inference_s"] + t["agent_s"] <= t["wall_clock_s"] + 1e-6 for q in d for t in q["turns"])'
    assert_json "$name/events.jsonl" '[e["data"]["name"] for e in d if e["event"] == "note" and "server_" in str(e.get("data"))][:2] == ["server_away", "server_back"]'
    stop_fake
    expect_exit 0 agent replay "$name" --mode hermetic --output "$name-again"
done

step "never brought back: the run stops, and says how to go on with it"
for at_once in 1 8; do
    start_fake --bench 0 --delay-ms 40
    begin "lost $at_once" --concurrency $at_once --server-wait 1s
    kill_fake
    ends 1
    check_err "no server came back within 1 s: the run stops"
    assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume 'lost $at_once'"
    assert_json "lost $at_once/traces.jsonl" 'len(d) < 40 and {q["outcome"] for q in d} == {"answered", "server_lost"}'
    assert_json "lost $at_once/summary.json" 'd["status"] == "interrupted" and d["totals"]["failed"] == 0 and d["totals"]["interrupted"] == d["interrupted"]["server_lost"] >= 1 and d["failed"] == {}'
    check_out "interrupted"
    expect_exit 0 agent validate "lost $at_once"
    expect_exit 0 agent replay "lost $at_once" --mode hermetic --output "lost-again-$at_once"
    # Without its server it is not begun again, and the line stays the last one.
    expect_exit 1 agent resume "lost $at_once"
    assert_matches err "to continue: ipw-agent resume '.*lost $at_once'\$"
    start_fake --bench 0 --port "$FAKE_PORT"
    expect_exit 0 agent resume "lost $at_once"
    all_answered "lost $at_once"
    assert_json "lost $at_once/attempts.jsonl" 'all(q["outcome"] == "server_lost" and q["superseded"] == "cut" for q in d)'
    stop_fake
done

step "the wait can be switched off"
start_fake --bench 0 --delay-ms 40
begin off --server-failures 0 --max-retries 0
kill_fake
ends 0
no_err "the run waits"
assert_json off/traces.jsonl 'len(d) == 40 and any(q["outcome"] == "error" for q in d)'
no_err "to go on"

step "one of two servers is dead: the run does not stop"
start_fake --bench 0 --delay-ms 40
FIRST=$BASE_URL
start_fake --bench 0 --delay-ms 40
begin two --base-url "$FIRST" --concurrency 8 --server-wait 1s
kill_fake
ends 0
no_err "no server answers"
all_answered two

step "a request that each time brings the server down ends by itself, and the run goes on"
cat >poison <<'C'
when 7 + 7
always
text half an
cut
---
always
text FINAL ANSWER: 42
C
start_fake --script poison
expect_exit 0 agent run single --dataset twelve.jsonl --base-url "$BASE_URL" --model fake-model --output poison-run
assert_json poison-run/traces.jsonl '[(q["query_id"], q["outcome"]) for q in d if not q["completed"]] == [("q0006", "error")]'
no_err "no server answers"

step "a signal while the run waits: no grace for turns that cannot end"
start_fake --bench 0 --delay-ms 40
(
    trap - INT
    exec env --default-signal=INT "$IPW_AGENT" run single --dataset forty.jsonl --base-url "$BASE_URL" --output signalled >out 2>err </dev/null
) &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
until [ "$(fake_requests)" -ge 12 ]; do sleep 0.02; done
kill_fake
await_err "no server answers"
kill -INT $AGENT_PID
ends 130
assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume signalled"
assert_json signalled/traces.jsonl 'd[-1]["outcome"] == "interrupted"'

end_test
