# merge: shards that saw different devices, and clients of one scraped server on several machines.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5
cat >gpus.txt <<'TXT'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
device GPU-00000000-0000-0000-0000-000000000002 Stub_H200 700000
energy 1 counter watts=100 period_ms=20
TXT
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpus.txt"
awk 'BEGIN { for (i = 1; i <= 24; i++) printf "{\"id\":\"t%d\",\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
start_fake --bench 2 --delay-ms 30
GO="agent run tools --dataset rows.jsonl --base-url $BASE_URL --model fake-model --sample-interval 5ms -q"

step "two shards see one GPU, two the other, all four the CPU: each device is booked once"
expect_exit 0 $GO --concurrency 6 --output whole
python3 "$IPW_SOURCE_DIR/tests/e2e/cut_run.py" whole parts.shards 4 2 || fail "cut"
damaged parts.shards/0-of-4 parts.shards/1-of-4 parts.shards/2-of-4 parts.shards/3-of-4
expect_exit 0 agent merge parts.shards
check_out "they shared devices"
python3 - <<'PY' || fail "other books"
import json
def read(run):
    return json.load(open(run + "/manifest.json")), {t["query_id"]: t for t in map(json.loads, open(run + "/traces.jsonl"))}
(whole, truth), (parts, merged) = read("whole"), read("parts")
assert len(parts["segments"]) == 1 and truth.keys() == merged.keys()
a, b = whole["segments"][0]["ledger"], parts["segments"][0]["ledger"]
# To the microjoule: tests/unit/ledger/test_ledger_scopes.c.  Here a step at an end of the run may have a phase in it, which
# the two books cut by their own fits.
def close(x, y, far=1e-2):
    assert abs(x - y) <= far, (x, y)
# All shards saw the processor: the uncut run's totals, idle joules and joules of each query.
for d in ("cpu", "dram"):
    close(a[d]["total_j"], b[d]["total_j"])
    close(a[d]["idle_j"], b[d]["idle_j"])
    for i, t in truth.items():
        close(t["energy"][d]["joules"], merged[i]["energy"][d]["joules"], 1e-3 * t["energy"][d]["joules"])
# A GPU's own queries have all of its total but the idle part.  The uncut run ends within a step of
# the counter, and cuts it by the phases of all queries, so its total is the same to a part of a step.
devices = b["gpu"]["devices"]
names = sorted(devices)
assert [n.split("@")[0] for n in names] == ["gpu0", "gpu0"] and len(set(names)) == 2, names
close(b["gpu"]["total_j"], sum(devices[n]["total_j"] for n in names))
for n, uncut, watts in zip(names, ("gpu0", "gpu1"), (300, 100)):
    own = [t for t in merged.values() if n in t["energy"]["gpu"]["devices"]]
    assert own and all(list(t["energy"]["gpu"]["devices"]) == [n] for t in own)
    used = sum(t["energy"]["gpu"]["joules"] for t in own)
    close(devices[n]["total_j"], devices[n]["idle_j"] + used, 1e-6)
    close(devices[n]["total_j"], a["gpu"]["devices"][uncut]["total_j"], watts * 0.02)
assert sum(len(t["energy"]["gpu"]["devices"]) for t in merged.values()) == 24
# Naive addition counts the processor four times, and each GPU twice: the shards' own books were
# copied from the uncut run, which saw both.
for d in ("cpu", "dram", "gpu"):
    close(parts["merge"]["added_j"][d], 4 * b[d]["total_j"], 0.1 if d != "gpu" else 24)
PY
expect_exit 0 agent validate parts
expect_exit 0 agent ledger parts --check
expect_exit 0 agent replay parts --mode hermetic
expect_exit 0 agent report parts
expect_exit 0 agent compare parts whole
expect_exit 0 agent export parts --format jsonl

step "a GPU has the same books without the shards of the other one"
rm -r parts.shards/1-of-4 parts.shards/3-of-4
expect_exit 0 agent merge parts.shards --partial --output two
python3 - <<'PY' || fail "other books"
import json
ledgers = [json.load(open(run + "/manifest.json"))["segments"][0]["ledger"]["gpu"] for run in ("parts", "two")]
for k in ("total_j", "idle_j"):
    assert abs(ledgers[0]["devices"][min(ledgers[0]["devices"])][k] - ledgers[1][k]) < 1e-6, k
all, two = ({t["query_id"]: t for t in map(json.loads, open(run + "/traces.jsonl"))} for run in ("parts", "two"))
assert 0 < len(two) < 24
for i, t in two.items():
    assert abs(t["energy"]["gpu"]["joules"] - all[i]["energy"]["gpu"]["joules"]) < 1e-6, i
PY

step "a judge's joules are in the books of the shards that went on: null, not twice"
cat >verdicts <<'CASSETTE'
always
text A
usage 40 1
---
CASSETTE
start_fake --script verdicts
pids=
for i in 0 1; do
    "$IPW_AGENT" ${GO#agent } --judge-model j --judge-url "$BASE_URL" --output judged --shard $i/2 >/dev/null 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || fail "a shard: exit status $?"; done
expect_exit 0 agent merge judged.shards
assert_json judged/manifest.json "len(d['segments']) == 1"
assert_json judged/traces.jsonl "len(d) == 24 and all(t['judge_model'] == 'j' for t in d)"
assert_json judged.shards/0-of-2/traces.jsonl "any(t.get('judge_gpu_energy_joules') is not None for t in d)"
assert_json judged/traces.jsonl "all(t.get('judge_gpu_energy_joules') is None and t.get('judge_cpu_energy_joules') is None for t in d)"

end_test
