# merge: the shards of a run as one run, with every device booked once.
# Sanitizer: the C of merging, whole.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5
cat >gpu.txt <<'TXT'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
TXT
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
awk 'BEGIN { for (i = 1; i <= 24; i++) printf "{\"id\":\"t%d\",\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
start_fake --bench 2 --delay-ms 30
GO="agent run tools --dataset rows.jsonl --base-url $BASE_URL --model fake-model --sample-interval 5ms -q"

# same_books A B: the balance of each domain to a microjoule, and each query's joules to FRACTION.
same_books() {
    python3 - "$1" "$2" "$3" <<'PY' || fail "$1 and $2: other books"
import json, os, sys, trace_lines
a, b = (json.load(open(r + "/summary.json"))["ledger"] for r in sys.argv[1:3])
# Under a sanitizer a reading may come late: a step at an end has a phase in it, which both books cut by their own fits.
far = 1e-3 if os.environ.get("IPW_SANITIZE") else 1.001e-6 # as a difference of numbers with six digits
for d in ("cpu", "dram", "gpu"):
    for k in ("total_j", "idle_j", "queries_j", "warmup_j", "wasted_j"):
        assert abs(a[d][k] - b[d][k]) <= far, (d, k, a[d][k], b[d][k])
    assert a[d]["balanced"] and b[d]["balanced"], d
lines = [{(t["query_id"], t["epoch"]): t for t in map(trace_lines.loads, open(r + "/traces.jsonl"))} for r in sys.argv[1:3]]
assert lines[0].keys() == lines[1].keys()
for key, t in lines[0].items():
    for d in ("cpu", "dram", "gpu"):
        x, y = t["energy"][d]["joules"], lines[1][key]["energy"][d]["joules"]
        assert abs(x - y) <= float(sys.argv[3]) * x, (key, d, x, y)
PY
}

step "a run cut into four overlapping shards on one device has the balance of the uncut run"
expect_exit 0 $GO --concurrency 6 --output whole
python3 "$IPW_SOURCE_DIR/tests/e2e/cut_run.py" whole parts.shards 4 || fail "cut"
damaged parts.shards/0-of-4 parts.shards/1-of-4 parts.shards/2-of-4 parts.shards/3-of-4
expect_exit 0 agent merge parts.shards --output parts
check_out "parts: 24 queries of 4 shards"
check_out "they shared devices"
same_books whole parts 0.001
# Naive addition counts the device four times.
assert_json parts/manifest.json "all(abs(d['merge']['added_j'][k] - 4 * d['segments'][0]['ledger'][k]['total_j']) < 1e-5 for k in ('cpu', 'gpu'))"
assert_json parts/manifest.json "len(d['segments']) == 1 and len(d['segments'][0]['merged']) == 4"
assert_eq "$(json parts/traces.jsonl "sorted((t['query_index'], t['query_id'], t['answer']) for t in d)")" \
    "$(json whole/traces.jsonl "sorted((t['query_index'], t['query_id'], t['answer']) for t in d)")"

step "real shards, side by side: one session, an ordinary run"
for i in 0 1 2; do "$IPW_AGENT" ${GO#agent } --epochs 2 --warmup 1 --output cut --shard $i/3 >/dev/null & pids="${pids-} $!"; done
for pid in $pids; do wait "$pid" || fail "a shard: exit status $?"; done
expect_exit 0 agent merge cut.shards
assert_json cut/traces.jsonl "len(d) == 48 and sorted(t['query_index'] for t in d) == list(range(3, 51))"
assert_json cut/summary.json "d['status'] == 'complete' and d['run']['planned'] == 48 and d['ledger']['gpu']['balanced']"
assert_json cut/manifest.json "len(d['segments']) == 1 and d['config']['shard'] is None and d['config']['max_queries'] == 24 and d['config']['concurrency'] == d['segments'][0]['concurrency'] == 3"
assert_json cut/manifest.json "d['merge']['added_j']['gpu'] > 1.05 * d['segments'][0]['ledger']['gpu']['total_j']"
assert_file_lines cut/warmup.jsonl 3
truth books cut
expect_exit 0 agent ledger cut --check
expect_exit 0 agent replay cut --mode hermetic
expect_exit 0 agent compare cut whole
expect_exit 0 agent export cut --format jsonl
expect_exit 0 agent score cut --scorer exact
expect_exit 3 agent resume cut
check_err command

step "while shards go on: what is done is merged now, and all of it later"
expect_exit 0 $GO --output soon --shard 0/2
"$IPW_AGENT" ${GO#agent } --output soon --shard 1/2 --epochs 1 >/dev/null &
going=$!
await_lines soon.shards/1-of-2/traces.jsonl
expect_exit 0 agent merge soon.shards --partial
check_err "left out: 1-of-2: is still running"
expect_exit 0 agent validate soon
wait $going || fail "a shard: exit status $?"
expect_exit 0 agent merge soon.shards
assert_file_lines soon/traces.jsonl 24

step "the merged run is the uncut run but for times, joules and sessions"
expect_exit 0 $GO --output one
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms -q --output two --shard 0/2
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms -q --output two --shard 1/2
expect_exit 0 agent merge two.shards
python3 - one two <<'PY' || fail "they differ"
import json, sys, trace_lines
def texts(run):
    """What does not depend on the clock: the words of each query's events, and of its line."""
    events, traces = {}, {}
    for e in map(json.loads, open(run + "/events.jsonl")):
        if e["query"] < 0 or e["event"] == "note": continue
        data = {k: v for k, v in e.get("data", {}).items() if k in ("prompt", "messages", "content", "arguments", "result", "answer", "number", "epoch", "place", "seed")}
        events.setdefault(e["query"], []).append((e["event"], e.get("id"), e.get("name"), e.get("outcome"), json.dumps(data, sort_keys=True)))
    for t in map(trace_lines.loads, open(run + "/traces.jsonl")):
        traces[t["query_index"]] = {k: t[k] for k in ("query_id", "epoch", "query_text", "response_text", "answer", "is_resolved", "outcome", "num_turns", "total_tokens", "metadata", "reference_answer")}
    return events, traces
a, b = texts(sys.argv[1]), texts(sys.argv[2])
assert a == b
def config(run):
    m = json.load(open(run + "/manifest.json"))
    return m["config"], m["hashes"]
assert config(sys.argv[1]) == config(sys.argv[2]), (config(sys.argv[1]), config(sys.argv[2]))
PY
# One after the other: two sessions, whose joules add.
assert_json two/manifest.json "len(d['segments']) == 2 and abs(d['merge']['added_j']['cpu'] - sum(s['ledger']['cpu']['total_j'] for s in d['segments'])) < 1e-5"

step "a shard that was killed and resumed while another one ran: its attempts are booked, too"
SHARD="--concurrency 2 --output dead --shard"
# A device's counter has one zero for all processes: under load the last shard may read it only after the other ended.
sed -i 's/^energy 0 counter.*/& start_mj=0 origin_ms=0/' gpu.txt
"$IPW_AGENT" ${GO#agent } $SHARD 1/2 --epochs 3 >/dev/null &
other=$!
"$IPW_AGENT" ${GO#agent } $SHARD 0/2 --epochs 3 >/dev/null 2>&1 &
victim=$!
await_lines dead.shards/0-of-2/traces.jsonl
kill -9 $victim
wait $victim 2>/dev/null
expect_exit 3 agent merge dead.shards
match_err "dead.shards/[01]-of-2: (was killed|is still running).*--partial leaves it out"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms -q $SHARD 0/2 --epochs 3 --resume
wait $other || fail "the other shard: exit status $?"
expect_exit 0 agent merge dead.shards
assert_json dead/traces.jsonl "len(d) == 72 and sorted(t['query_index'] for t in d) == list(range(72))"
assert_json dead/attempts.jsonl "len(d) >= 1 and all(t['superseded'] == 'cut' for t in d)"
assert_json dead/summary.json "all(d['ledger'][k]['balanced'] and d['ledger'][k]['wasted_j'] > 0 for k in ('cpu', 'gpu'))"
truth books dead

step "other hosts: their joules add"
cp -r cut.shards far.shards
sed -i 's/"boot_id":"[^"]*"/"boot_id":"another"/g' far.shards/2-of-3/manifest.json
expect_exit 0 agent merge far.shards
assert_json far/manifest.json "len(d['segments']) == 2"
sed -i 's/"device":"intel-rapl:0"/"device":"intel-rapl:9"/g' far.shards/1-of-3/manifest.json
expect_exit 3 agent merge far.shards
check_err "read it by different sensors: give all shards the same --telemetry"
one_message
damaged far.shards/0-of-3 far.shards/1-of-3 far.shards/2-of-3

step "gaps, and shards that are running, killed, torn or of another version"
cp -r cut.shards gap.shards
damaged gap.shards/0-of-3 gap.shards/1-of-3 gap.shards/2-of-3
rm -r gap.shards/0-of-3
expect_exit 3 agent merge gap.shards
check_err "gap.shards: 2 of 3 shards are there"
expect_exit 0 agent merge gap.shards --partial
match_err "[0-9]+ queries are missing"
check_err "0-of-3: is not there"
assert_json gap/summary.json "d['status'] == 'interrupted' and 'partial merge: 2 of 3 shards' in d['note']"
assert_json gap/manifest.json "d['merge']['absent'] == ['0-of-3'] and not d['merge']['left_out'] and d['merge']['missing'] == 48 - sum(s['queries'] for s in d['merge']['shards']) > 0"
expect_exit 0 agent report gap --markdown
check_words "a partial merge: 2 of 3 shards"
expect_exit 0 agent replay gap --mode hermetic --output gap.again
assert_json gap.again/summary.json "'the saved run is a partial merge' in d['note']"
sed -i 's/"version":"[0-9.]*"/"version":"9.9"/' gap.shards/1-of-3/manifest.json
expect_exit 3 agent merge gap.shards
check_err "1-of-3: was written by ipw-agent 9.9"
expect_exit 0 agent merge gap.shards --partial
check_err "left out: 1-of-3: was written by ipw-agent 9.9"
cp -r cut.shards/1-of-3 gap.shards/3-of-3
sed -i 's/"end":"complete"/"end":null/' gap.shards/3-of-3/manifest.json
expect_exit 0 agent merge gap.shards --partial
check_err "left out: 3-of-3: was killed"
cp -r cut.shards/1-of-3/. gap.shards/3-of-3
head -c 5000 cut.shards/1-of-3/events.jsonl >gap.shards/3-of-3/events.jsonl
expect_exit 0 agent merge gap.shards --partial
assert_json gap/manifest.json "[l['shard'] for l in d['merge']['left_out']] == ['1-of-3', '3-of-3'] and 'is torn' in d['merge']['left_out'][1]['text'] and d['merge']['absent'] == ['0-of-3']"
check_err "left out: 3-of-3: gap.shards/3-of-3/events.jsonl: its last line is torn"
damaged gap.shards/3-of-3

step "shards of other runs are refused, and both are named"
cp -r cut.shards mixed.shards
damaged mixed.shards/0-of-3 mixed.shards/1-of-3 mixed.shards/2-of-3 mixed.shards/again
cp -r mixed.shards/1-of-3 mixed.shards/again
expect_exit 3 agent merge mixed.shards
check_err "mixed.shards/1-of-3 and mixed.shards/again: both are the shard 1-of-3, with its queries"
expect_exit 3 agent merge mixed.shards --partial
rm -r mixed.shards/again
sed -i 's/"model":"fake-model"/"model":"other"/' mixed.shards/1-of-3/manifest.json
expect_exit 3 agent merge mixed.shards --partial
check_err "mixed.shards/0-of-3 and mixed.shards/1-of-3 are not of one run: the model differs (model)"
# refused KEY PART: shard 1 has another value there.
refused() {
    cp cut.shards/1-of-3/manifest.json mixed.shards/1-of-3/manifest.json
    python3 - mixed.shards/1-of-3/manifest.json "$1" <<'PY'
import json, sys
manifest = json.load(open(sys.argv[1]))
manifest["config"][sys.argv[2]] = "0" * 64 if "sha256" in sys.argv[2] else 77
json.dump(manifest, open(sys.argv[1], "w"), sort_keys=True, separators=(",", ":"))
PY
    expect_exit 3 agent merge mixed.shards --partial
    check_err "mixed.shards/0-of-3 and mixed.shards/1-of-3 are not of one run: the $2 differs ($1)"
}
refused agent_sha256 agent
refused dataset_sha256 dataset
refused seed configuration

step "what validate would refuse is not merged, and the shard is named; --partial leaves it out"
cp -r cut.shards twice.shards
damaged twice.shards/0-of-3 twice.shards/1-of-3 twice.shards/2-of-3
python3 - twice.shards/1-of-3/events.jsonl <<'PY'
import sys
lines = open(sys.argv[1]).readlines()
at = next(i for i, line in enumerate(lines) if '"lm_inference_end"' in line)
lines.insert(at, lines[at])
open(sys.argv[1], "w").writelines(lines)
PY
expect_exit 3 agent merge twice.shards
check_err "twice.shards/1-of-3/events.jsonl:"
[ ! -e twice ] && [ ! -e twice.merging ] || fail "something was written"
expect_exit 0 agent merge twice.shards --partial
check_err "left out: 1-of-3: "
expect_exit 0 agent validate twice

step "a run that no merge wrote is not replaced; a merge is, and so is what a killed one left"
expect_exit 1 agent merge cut.shards --output whole
check_err "whole: holds a run that no merge wrote"
mkdir cut.merging
head -c 3000 cut/events.jsonl >cut.merging/events.jsonl
expect_exit 0 agent merge cut.shards
[ ! -e cut.merging ] || fail "cut.merging is left"
expect_exit 3 agent merge nowhere.shards
expect_exit 2 agent merge whole
check_err "does not end in .shards"

end_test
