# Power cuts: what a disk keeps of a run's files may be of different moments.  The short form of
# tests/drill/power_cut_drill.py, whose head says what is checked; then one cut made by hand.
. "$(dirname "$0")/lib.sh"

step "modelled power cuts"
python3 "$IPW_SOURCE_DIR/tests/drill/power_cut_drill.py" --agent "$IPW_AGENT" --fakes "$(dirname "$IPW_FAKE")" \
    --cuts 12 --queries 18 >out 2>err
got=$?
[ $got -ne 77 ] || skip "$(cat out)"
assert_eq $got 0 "(power_cut_drill)"
check_out ": 12 held"

step "samples of the last queries are lost, their lines are not"
start_tree tree --watts-package 80 --interval-ms 1 --seconds 600
start_fake --bench 1 --delay-ms 20
for i in 1 2 3 4 5 6 7 8; do echo "{\"id\":\"r$i\",\"question\":\"Q $i?\",\"answer\":\"42\"}"; done >rows.jsonl
export IPW_POWERCAP_ROOT="$WORK/tree"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --concurrency 2 \
    --sample-interval 5ms --output run
python3 - <<'PY'
import json
# As a cut leaves it: no end of the session, half of its samples, one query's line without its events.
lines = open("run/power.jsonl").read().splitlines(True)
open("run/power.jsonl", "w").writelines(lines[:len(lines) // 2])
events = open("run/events.jsonl").read().splitlines(True)
open("run/events.jsonl", "w").writelines(events[:-4])
manifest = json.load(open("run/manifest.json"))
for key in ("end", "end_ns", "ended_at", "ledger", "own"):
    manifest["segments"][0][key] = None
json.dump(manifest, open("run/manifest.json", "w"))
PY
rm run/summary.json
cp run/traces.jsonl before.jsonl
expect_exit 0 agent resume run
check_err "moved to traces.jsonl.damaged"
assert_json run/traces.jsonl 'sorted(q["query_id"] for q in d) == ["r%d" % i for i in range(1, 9)]'
[ -s run/traces.jsonl.damaged ] || fail "no line was moved"
assert_json run/summary.json 'd["ledger"]["cpu"]["balanced"] is True and d["ledger"]["cpu"]["wasted_j"] > 0'
python3 - <<'PY' || fail "a line changed"
now, then = open("run/traces.jsonl").readlines(), open("before.jsonl").readlines()
aside = open("run/traces.jsonl.damaged").readlines()
kept = [line for line in then if line not in aside]
assert now[:len(kept)] == kept and len(kept) + len(aside) == 8, (len(kept), len(aside))
PY
expect_exit 0 agent ledger run --check
expect_exit 0 agent validate run

end_test
