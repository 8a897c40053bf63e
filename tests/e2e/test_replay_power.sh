# The same trajectory and the same ledger: a hermetic replay of a run with sensors, warm-up and epochs,
# that was killed with queries in flight, and taken up again; and of one that was interrupted.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 5
awk 'BEGIN { for (i = 1; i <= 6; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

# run ARGS...: in the background, until two queries of it are on disk.
run() {
    IPW_POWERCAP_ROOT="$WORK/tree" "$IPW_AGENT" run tools --dataset rows.jsonl --base-url "$BASE_URL" \
        --model fake-model --sample-interval 10ms --concurrency 2 "$@" >run.out 2>&1 </dev/null &
    AGENT_PID=$!
    while [ "$1" != --output ]; do shift; done
    tries=0
    while [ "$(cat "$2/traces.jsonl" 2>/dev/null | wc -l)" -lt 2 ] && kill -0 $AGENT_PID 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || fail "no query was finished"
        sleep 0.02
    done
}

# same RUN: its replay has the same files and the same books.
same() {
    rm -rf replayed
    expect_exit 0 agent replay "$1" --mode hermetic -o replayed
    check_out "identical to the saved run"
    for file in events.jsonl traces.jsonl power.jsonl warmup.jsonl; do
        [ -e "$1/$file" ] || [ -e "replayed/$file" ] || continue
        cmp "$1/$file" "replayed/$file" || fail "$1: $file differs"
    done
    assert_json "$1/events.jsonl" 'any(e.get("name") == "booked" for e in d)'
    expect_exit 0 agent ledger "$1" --check --json
    cp out ledger.json
    expect_exit 0 agent ledger replayed --check --json
    sed "s|\"replayed\"|\"$1\"|" out | cmp - ledger.json || fail "$1: the ledger differs"
}

# Seconds long until it is cut down, so that it is, and quick when it is taken up again.
start_fake --bench 2 --delay-ms 300
step "killed"
run --epochs 2 --warmup 1 --output run
kill -KILL $AGENT_PID 2>/dev/null
wait $AGENT_PID 2>/dev/null
rm -f run/lock
cp -r run killed
run --output stopped
kill -TERM $AGENT_PID 2>/dev/null
wait $AGENT_PID 2>/dev/null
stop_fake
start_fake --bench 2 --delay-ms 20
IPW_POWERCAP_ROOT="$WORK/tree" expect_exit 0 agent resume run --base-url "$BASE_URL"
stop_fake

step "taken up again"
assert_json run/events.jsonl 'sum(e["event"] == "run_start" for e in d) == 2'
assert_json run/summary.json 'd["totals"]["queries"] == 12 and d["ledger"]["cpu"]["balanced"]'
same run
python3 - <<'PY' || fail "summaries differ"
import json
a, b = (json.load(open(d + "/summary.json")) for d in ("run", "replayed"))
def same(path, x, y): # sums may be taken in another order
    if isinstance(x, dict):
        assert x.keys() == y.keys(), path
        for key in x:
            same(path + "." + key, x[key], y[key])
    elif isinstance(x, float):
        assert abs(x - y) <= 1e-9 * max(1, abs(x)), (path, x, y)
    else:
        assert x == y, (path, x, y)
for key in ("ledger", "totals", "efficiency", "accounts"):
    same(key, a[key], b[key])
PY
step "beside a query that diverges its neighbours have another share, and the record is not blamed"
python3 - <<'PY' || fail "edit"
import json, shutil
shutil.copytree("run", "edited")
lines = open("run/events.jsonl").read().splitlines()
docs = [json.loads(line) for line in lines]
first = [i for i, d in enumerate(docs) if d["event"] == "query_start" and not d["data"]["warmup"]][0]
reply = [i for i, d in enumerate(docs) if i > first and d["event"] == "lm_inference_start" and d["query"] == docs[first]["query"]][0]
docs[reply]["data"]["messages"][-1]["content"] += "?"
lines[reply] = json.dumps(docs[reply], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
open("edited/events.jsonl", "w").write("\n".join(lines) + "\n")
PY
damaged edited
rm -rf replayed
expect_exit 4 agent replay edited --mode hermetic -o replayed
assert_json replayed/replay.json 'd["diverged"] == 1 and d["traces_differ"] >= 1'
match_err "[0-9]+ trace lines? differs? from the saved run's: joules were shared with what diverged"
no_err "does not follow"

step "the idle machine is the record's, and net joules that it withheld stay withheld"
start_fake --bench 1
IPW_POWERCAP_ROOT="$WORK/tree" expect_exit 0 agent run tools --dataset rows.jsonl --limit 2 --base-url "$BASE_URL" \
    --model fake-model --baseline 300ms --output idle -q
stop_fake
for after in as-it-is 1000; do
    python3 - $after <<'PY' || fail "edit"
import json, sys
d = json.load(open("idle/summary.json"))
if sys.argv[1] != "as-it-is":
    d["baseline"]["domains"]["cpu"]["after_w"] = float(sys.argv[1])
    json.dump(d, open("idle/summary.json", "w"))
PY
    rm -rf replayed
    expect_exit 0 agent replay idle --mode hermetic -o replayed
    assert_json replayed/summary.json 'd["baseline"]["seconds"] == 0.3 and d["baseline"]["domains"]["cpu"]["before_w"] > 0'
    python3 - $after <<'PY' || fail "the baseline differs"
import json, sys
a, b = (json.load(open(f"{run}/summary.json")) for run in ("idle", "replayed"))
if sys.argv[1] == "as-it-is":
    assert a["baseline"] == b["baseline"], (a["baseline"], b["baseline"])
    assert a["accounts"] == b["accounts"], (a["accounts"], b["accounts"])
else:
    assert b["baseline"]["domains"]["cpu"]["net_withheld"] == "drift", b["baseline"]
    assert b["accounts"]["cpu"]["marginal_j"] is None, b["accounts"]
PY
done

step "stopped by a signal"
assert_json stopped/events.jsonl 'any(e["event"] == "query_end" and e["outcome"] == "interrupted" for e in d)'
same stopped
step "cut off"
same killed
end_test
