# Taking a run up again: what is kept, what is run again, what is refused (D-10, D-11, D-12, D-17, D-18, P-6).
# Sanitizer: runs that were cut, gone on with.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 6; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
cat >fails.txt <<'CASSETTE'
when Question 2
always
status 400 Bad
json {"error":{"message":"no"}}
---
when Question 4
always
text begun
stall
---
always
text FINAL ANSWER: 42
CASSETTE

# begin OUT ARGS...: in the background, until the fourth question was asked, which is never answered.
begin() {
    out=$1
    shift
    start_fake --script fails.txt
    "$IPW_AGENT" run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --max-retries 0 \
        --output "$out" --verbose "$@" >out 2>err </dev/null &
    AGENT_PID=$!
    FAKES="$FAKES $AGENT_PID"
    tries=0
    until [ "$(fake_requests)" -ge 4 ] && [ "$(grep -c '^ipw-agent: done ' err)" -ge 3 ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "the fourth request did not come"
        kill -0 $AGENT_PID 2>/dev/null || fail "the agent ended early"
        sleep 0.05
    done
}
killed() {
    kill "-$1" $AGENT_PID
    wait $AGENT_PID 2>/dev/null
    FAKES=$(echo "$FAKES" | sed "s/ $AGENT_PID\$//")
    stop_fake
}

step "P-6: a crash leaves no image of the memory, and the run goes on"
ulimit -c unlimited 2>/dev/null
begin crashed
assert_eq "$(grep -c '^ipw-agent: done ' err)" 3 "(announced)"
killed SEGV
[ -z "$(find . -name 'core*')" ] || fail "a core was left"
[ -f crashed/lock ] || fail "no lock to be found stale"
start_fake --bench 0
expect_exit 0 agent resume crashed --base-url "$BASE_URL" --verbose
check_err "its lock was left by a run that has ended (pid $AGENT_PID, start "
check_err "continues: 3 of 6 queries are done, 1 earlier attempt"
assert_eq "$(sed -n 's/^ipw-agent: done //p' err | sort | tr '\n' ' ')" "q0003 q0004 q0005 " "(announced)"
assert_eq "$(fake_requests)" 3 "(requests)"
[ ! -e crashed/lock ] || fail "the lock was left"

step "each query once; the failed one stays failed; what was cut down is on record"
assert_json crashed/traces.jsonl 'sorted((q["query_id"], q["segment"], q["completed"]) for q in d) == [("q0000", 0, True), ("q0001", 0, False), ("q0002", 0, True), ("q0003", 1, True), ("q0004", 1, True), ("q0005", 1, True)]'
assert_json crashed/attempts.jsonl '[(q["query_id"], q["segment"], q["superseded"], q["outcome"], len(q["turns"])) for q in d] == [("q0003", 0, "cut", "unfinished", 1)]'
assert_json crashed/summary.json 'd["status"] == "complete" and d["totals"]["queries"] == 6 and d["totals"]["failed"] == 1 and d["run"]["sessions"] == 2 and d["run"]["earlier_attempts"] == 1'
assert_json crashed/manifest.json '[s["end"] for s in d["segments"]] == ["killed", "complete"] and d["clock"] == d["segments"][0]["clock"]'
assert_json crashed/events.jsonl '[e["segment"] for e in d if e["event"] == "run_start"] == [0, 1] and sum(e["event"] == "run_end" for e in d) == 1'

step "a run that is done is left alone"
(cd crashed && cksum ./*) >before
expect_exit 0 agent resume crashed
check_err "every query is done"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --max-retries 0 --output crashed --resume
expect_exit 1 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output crashed
check_err "crashed: already contains a run; use --resume to continue it"
(cd crashed && cksum ./*) >after
cmp -s before after || fail "something changed"

step "killed inside --rerun failed, behind the move of a line: the query is missing, and the run is not done"
cp -r crashed behind
python3 - <<'PY'
import json, re
lines = open("behind/traces.jsonl").read().splitlines(True)
failed = [l for l in lines if json.loads(l)["query_id"] == "q0001"][0]
open("behind/attempts.jsonl", "a").write(re.sub(r'("started_at":"[^"]*",)', r'\1"superseded":"failed",', failed, 1))
open("behind/traces.jsonl", "w").writelines(l for l in lines if l != failed)
PY
expect_exit 0 agent resume behind --base-url "$BASE_URL"
check_err "behind: continues: 5 of 6 queries are done, 2 earlier attempts"
assert_json behind/traces.jsonl 'len(d) == 6 and [q["segment"] for q in d if q["query_id"] == "q0001"] == [2]'
assert_json behind/attempts.jsonl '[(q["query_id"], q["superseded"]) for q in d] == [("q0003", "cut"), ("q0001", "failed")]'

step "--force may lengthen a run that is done"
expect_exit 0 agent run single --dataset rows.jsonl --limit 2-3 --base-url "$BASE_URL" --model fake-model --output longer
expect_exit 0 agent resume longer --limit 2-5 --force
check_err "longer: continues: 2 of 4 queries are done"
assert_json longer/traces.jsonl 'sorted(q["query_id"] for q in d) == ["q0001", "q0002", "q0003", "q0004"]'

step "what it leaves out of a run stays in its summary"
expect_exit 0 agent resume longer --limit 4-6 --force --rerun failed
check_err "longer: continues: 2 of 3 queries are done"
assert_json longer/traces.jsonl 'sorted(q["query_id"] for q in d) == ["q0001", "q0002", "q0003", "q0004", "q0005"]'
assert_json longer/summary.json 'd["totals"]["queries"] == 5'
expect_exit 0 agent validate longer

step "--rerun failed: again, and the earlier attempt stays on record"
expect_exit 0 agent resume crashed --rerun failed --base-url "$BASE_URL"
assert_json crashed/traces.jsonl 'len(d) == 6 and all(q["completed"] for q in d) and [q["segment"] for q in d if q["query_id"] == "q0001"] == [2]'
assert_json crashed/attempts.jsonl '[(q["query_id"], q["segment"], q["superseded"]) for q in d] == [("q0003", 0, "cut"), ("q0001", 0, "failed")]'
assert_json crashed/attempts.jsonl '"HTTP" in d[1]["error"] or "400" in d[1]["error"]'
assert_json crashed/summary.json 'd["totals"]["failed"] == 0 and d["run"]["sessions"] == 3 and d["run"]["earlier_attempts"] == 2'
expect_exit 0 agent ledger crashed --check
stop_fake

step "stopped in the middle of the move to attempts.jsonl: the line in both files is an earlier attempt"
begin moved --grace 0.1s
killed TERM
python3 - <<'PY'
import json, re
lines = open("moved/traces.jsonl").read().splitlines(True)
failed = [l for l in lines if json.loads(l)["query_id"] == "q0001"][0]
open("moved/attempts.jsonl", "w").write(re.sub(r'("started_at":"[^"]*",)', r'\1"superseded":"failed",', failed, 1))
open("moved/traces.jsonl.tmp", "w").write(lines[0])
PY
start_fake --bench 0
expect_exit 0 agent resume moved --base-url "$BASE_URL"
assert_json moved/traces.jsonl 'sorted(q["query_id"] for q in d) == ["q%04d" % i for i in range(6)] and all(q["completed"] for q in d)'
assert_json moved/attempts.jsonl '[(q["query_id"], q["superseded"]) for q in d] == [("q0001", "failed"), ("q0003", "cut")]'
[ ! -e moved/traces.jsonl.tmp ] || fail "the half-written file was left"
stop_fake

step "D-12: a second run is refused at once while the first goes on"
begin busy
expect_exit 1 agent resume busy
check_err "busy: another run is writing here (pid $AGENT_PID, start "
one_message
expect_exit 1 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output busy
check_err "another run is writing here (pid $AGENT_PID"
kill -0 $AGENT_PID || fail "the first run was disturbed"
killed KILL

step "D-10: torn tails are set aside, and said"
cp -r busy torn
printf '{"event":"note","que' >>torn/events.jsonl
printf '\0\0\0\0\n\0\0' >>torn/traces.jsonl
start_fake --bench 0
before=$(cat torn/events.jsonl | wc -c)
expect_exit 0 agent resume torn --base-url "$BASE_URL"
check_err "torn/events.jsonl: its last line was torn: 20 bytes from byte $((before - 20)) on moved to events.jsonl.torn"
check_err "torn/traces.jsonl: its last line was torn: 7 bytes"
assert_eq "$(cat torn/events.jsonl.torn)" '{"event":"note","que'
assert_json torn/traces.jsonl 'len(d) == 6'
assert_json torn/manifest.json '[(t["file"], t["bytes"]) for t in d["segments"][1]["torn"]] == [("events.jsonl", 20), ("traces.jsonl", 7)]'

step "D-11: a damaged line in the middle is named, and nothing is changed"
damaged damaged
for file in traces events; do
    rm -rf damaged
    cp -r busy damaged
    sed -i '2s/^..../####/' damaged/$file.jsonl
    cksum damaged/* >before
    expect_exit 3 agent resume damaged --base-url "$BASE_URL"
    check_err "damaged/$file.jsonl:2: "
    one_message
    cksum damaged/* >after
    [ "$(grep -v 'lock$' before)" = "$(grep -v 'lock$' after)" ] || fail "$file: something changed"
done

step "D-17: another agent, dataset, model or configuration is refused by name; --force says and notes it"
refused() {
    cksum busy/*.jsonl busy/manifest.json >before
    expect_exit "$1" agent resume busy --base-url "$BASE_URL" ${3-}
    check_err "busy: cannot resume: the $2 "
    one_message
    cksum busy/*.jsonl busy/manifest.json >after
    cmp -s before after || fail "$2: something changed"
}
cp rows.jsonl rows.bak
sed -i 's/Question 5/Question five/' rows.jsonl
refused 3 "dataset (dataset_sha256)"
cp rows.bak rows.jsonl
refused 3 "dataset (selection_sha256)" "--limit 5"
refused 3 "model (model)" "--model other"
refused 3 "configuration (temperature)" "--temperature 0.5"
refused 3 "configuration (limits)" "--turn-limit 3"
refused 3 "configuration (warmup)" "--warmup 2"
expect_exit 0 agent resume busy --base-url "$BASE_URL" --temperature 0.5 --force --concurrency 3
check_err "warning: "
check_err "busy: --force: resumes although the configuration (temperature) was null, now 0.5"
assert_json busy/manifest.json 'd["segments"][1]["forced"] == ["the configuration (temperature) was null, now 0.5"] and d["segments"][1]["concurrency"] == 3 and d["segments"][0]["forced"] == []'
assert_json busy/traces.jsonl 'len(d) == 6'
stop_fake

step "an edited agent is another agent"
agent cat agents/single.lua >mine.lua 2>/dev/null || "$IPW_AGENT" cat agents/single.lua >mine.lua
begin mine
killed KILL
sed -i 's/^return/-- edited\nreturn/' mine.lua
: # the run above used the embedded one, which did not change
start_fake --bench 0
expect_exit 0 agent resume mine --base-url "$BASE_URL"
expect_exit 1 agent run mine.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output mine
stop_fake

step "D-18, S-6: an id is announced as text, whatever is in it"
printf '%s\n' '{"id":"../../x\u001b[2J\ny","question":"What?","answer":"42"}' '{"id":"ok","question":"What?","answer":"42"}' >odd.jsonl
start_fake --bench 0
expect_exit 0 agent run single --dataset odd.jsonl --base-url "$BASE_URL" --model fake-model --output odd --verbose
assert_eq "$(grep -c "^ipw-agent: done " err)" 2 "(announced)"
! grep -q "$(printf '\033')" err || fail "an escape sequence reached the terminal"
assert_json odd/traces.jsonl 'd[0]["query_id"] == "../../x\x1b[2J\ny"'

step "--resume without a run begins one; a run killed at birth too"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output new --resume
assert_json new/manifest.json 'len(d["segments"]) == 1'
mkdir born
: >born/events.jsonl
: >born/traces.jsonl
echo "pid 1, start 1, host gone, since then" >born/lock
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output born --resume
assert_json born/traces.jsonl 'len(d) == 6'

step "misuse is told"
expect_exit 2 agent run single --dataset rows.jsonl --resume
check_err "--resume: name the run to continue with --output"
expect_exit 2 agent run single --dataset rows.jsonl --output x --rerun some
check_err "expected none, cut, failed or all"
expect_exit 2 agent run single --dataset rows.jsonl --output x --sync sometimes
check_err "expected query, run or off"
expect_exit 3 agent resume nowhere
check_err "nowhere: no such run"
mkdir empty
expect_exit 3 agent resume empty
check_err "empty/manifest.json"

step "a header's value is not written down, and is asked for"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output header \
    --header "X-Team: hush-hush-hush" --sync off
assert_lacks header/manifest.json hush-hush
expect_exit 2 agent resume header
check_err "the value of --header was not written down"
expect_exit 0 agent resume header --header "X-Team: hush-hush-hush"

end_test
