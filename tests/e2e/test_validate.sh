# validate accepts what the program wrote and names what somebody changed; repair takes damaged
# lines out and says so.
# Sanitizer: runs that somebody changed.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"

step "a run as it was written"
expect_exit 0 agent run react --dataset gaia --limit 3 --model demo --concurrency 2 --output run
expect_exit 0 agent validate run
check_out "run: valid: 3 queries"
check_out "all energy values reproduced"
expect_exit 0 agent validate run --json
python3 -c 'import json; d = json.load(open("out")); assert d["valid"] and d["fault"] is None' ||
    fail "--json"

step "J-8: a table of corruptions, each named"
python3 "$IPW_SOURCE_DIR/tests/e2e/corruptions.py" "$IPW_AGENT" run >corruptions.out 2>&1 ||
    fail "$(cat corruptions.out)"
tail -1 corruptions.out

step "no run at all"
expect_exit 3 agent validate nowhere
one_message
check_err "nowhere: no such run"
mkdir empty
expect_exit 3 agent validate empty
check_err "empty/manifest.json"
expect_exit 3 agent repair empty

step "several runs: each has its line, and the worst is the exit status"
expect_exit 3 agent validate run nowhere run
assert_eq "$(grep -c '^run: valid: 3 queries' out)" 2
check_err "nowhere: no such run"
expect_exit 0 agent validate run run --json
assert_file_lines out 2

step "D-11: repair takes a damaged line out, keeps it, and says so"
cp -r run broken
sed -i '3i {"event":"note",,}' broken/events.jsonl
printf '{"event":"no' >>broken/events.jsonl
sed -i '2i nonsense' broken/power.jsonl
expect_exit 1 agent validate broken
check_err "broken/events.jsonl:"
expect_exit 0 agent repair broken
check_err "broken/events.jsonl: 12 bytes behind its last whole line are in events.jsonl.torn now"
check_err "broken/events.jsonl: 1 damaged line taken out, kept in events.jsonl.damaged"
check_err "broken/power.jsonl:2: "
assert_eq "$(cat broken/power.jsonl.damaged)" nonsense
assert_eq "$(cat broken/events.jsonl.torn)" '{"event":"no'
expect_exit 0 agent validate broken
cmp run/power.jsonl broken/power.jsonl || fail "power.jsonl is not what it was"
expect_exit 0 agent repair broken
check_out "no line is damaged"

step "a damaged line that becomes the last one is seen the first time"
cp -r run twice
{ sed -n '1s/"answer":"/&\xff/p' run/traces.jsonl && echo '{"answer":7}'; } >>twice/traces.jsonl
timeout 60 "$IPW_AGENT" repair twice >out 2>err
check_err "twice/traces.jsonl: 2 damaged lines taken out"
timeout 60 "$IPW_AGENT" repair twice >out 2>err
check_out "no line is damaged"
cmp run/traces.jsonl twice/traces.jsonl || fail "traces.jsonl is not what it was"

step "what taking lines out does not mend is said"
cp -r run lost
sed -i '1s/^/#/' lost/events.jsonl
expect_exit 1 agent repair lost
match_err "1 damaged line taken out"
match_err "before any run_start"
cmp -s run/traces.jsonl lost/traces.jsonl || fail "joules by unknown rules"
damaged lost

step "D-6: a record that was booked is gone, or was killed before its line: run again, no duplicate, an earlier attempt"
cat >cut.py <<'PY'
import json, os, shutil, sys
run, what = sys.argv[1:]
shutil.copytree("run", run)
def edit(name, change):
    lines = open(f"{run}/{name}").read().splitlines(True)
    open(f"{run}/{name}", "w").write("".join(change(lines)))
manifest = json.load(open(f"{run}/manifest.json"))
last = manifest["segments"][-1]
last.update(end=None, end_ns=None, ended_at=None, ledger=None, own=None)
os.unlink(f"{run}/summary.json")
if what == "line":
    edit("traces.jsonl", lambda lines: lines[:-1])
    edit("events.jsonl", lambda lines: [line for line in lines if '"event":"run_end"' not in line])
else:  # killed before its first event was written
    last["start_ns"] = None
    for name in ("traces.jsonl", "events.jsonl", "power.jsonl"):
        edit(name, lambda lines: [])
json.dump(manifest, open(f"{run}/manifest.json", "w"), sort_keys=True)
PY
python3 cut.py unwritten line || fail "cut.py"
expect_exit 0 agent validate unwritten
expect_exit 0 agent ledger unwritten --check --json
assert_json "$WORK/out" 'd["cut"] is True and d["identical"] is True and sum(q["earlier"] for q in d["queries"]) == 1'
expect_exit 0 agent resume unwritten -q
assert_json unwritten/attempts.jsonl '[(q["segment"], q["superseded"]) for q in d] == [(0, "cut")]'
assert_json unwritten/traces.jsonl 'sorted(q["segment"] for q in d) == [0, 0, 1]'

step "a line that a repair took out of a run that was over: resume runs its query again, its joules stay in the books"
cp -r run gone
sed -i '2s/^..../####/' gone/traces.jsonl
expect_exit 0 agent repair gone
check_err "gone/traces.jsonl: 1 damaged line taken out, kept in traces.jsonl.damaged"
check_err "gone: to run queries without a line again: ipw-agent resume gone"
expect_exit 0 agent resume gone
check_err "gone: continues: 2 of 3 queries are done, 1 earlier attempt"
assert_json gone/traces.jsonl 'sorted(q["segment"] for q in d) == [0, 0, 1] and len({q["query_id"] for q in d}) == 3'
assert_json gone/attempts.jsonl '[(q["segment"], q["superseded"], q["outcome"]) for q in d] == [(0, "cut", "answered")]'
assert_json gone/summary.json 'd["run"]["earlier_attempts"] == 1 and d["ledger"]["cpu"]["wasted_j"] > 0 and d["ledger"]["cpu"]["balanced"] is True'
expect_exit 0 agent validate gone
expect_exit 0 agent resume gone
check_err "every query is done"

step "the same of a session that was stopped, and of the warm-up"
expect_exit 0 agent run react --dataset gaia --limit 2 --model demo --warmup 1 --output warm -q
printf '####\n' >warm/warmup.jsonl
sed -i '1d' warm/traces.jsonl
sed -i 's/"end":"complete"/"end":"interrupted"/' warm/manifest.json
expect_exit 0 agent repair warm
check_err "behind its last whole line are in warmup.jsonl.torn now"
expect_exit 0 agent resume warm -q
assert_json warm/traces.jsonl 'sorted(q["segment"] for q in d) == [0, 1]'
assert_json warm/warmup.jsonl 'sorted(q["segment"] for q in d) == [0, 1]'
assert_json warm/summary.json 'd["ledger"]["cpu"]["balanced"] is True'

step "a session that was killed before its first event has no books, and does not spoil the run's"
python3 cut.py unborn all || fail "cut.py"
expect_exit 0 agent resume unborn -q
assert_json unborn/manifest.json '[(s["end"], s["ledger"] is None) for s in d["segments"]] == [("killed", True), ("complete", False)]'
assert_json unborn/summary.json 'd["ledger"]["cpu"]["balanced"] is True'

end_test
