# Joules that can be checked by arithmetic: a powercap tree that draws known watts (fake_powercap), a
# GPU that does (libnvidia-ml-stub.so), and a server that takes known times.
# Sanitizer: the C between sensors and figures, whole.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

awk 'BEGIN { for (i = 1; i <= 4; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

step "one query at a time: every turn costs its seconds times the watts"
start_fake --bench 2 --delay-ms 200
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --output serial
assert_json serial/traces.jsonl "len(d) == 4 and all(len(q['turns']) == 3 for q in d)"
# The GPU's counter is a function of the clock: 300 W times the seconds lie within the bounds of every
# query, turn and span.  The package's is written by a process: every window holds what its counter
# moved by.  Parts sum to the query, and all of it to the counter's own difference.
truth within serial gpu=300
truth books serial
# Alone on the machine, a turn's joules are its power times its seconds.
assert_json serial/traces.jsonl "all(abs(t[k + '_energy_joules'] - t[k + '_power_avg_watts'] * t['wall_clock_s']) < 1e-5 for q in d for t in q['turns'] for k in ('gpu', 'cpu'))"

step "every figure says how it was obtained"
# "measured" and "interpolated" promise bounds (energy.md 2h); what cannot keep them is "distributed".
assert_json serial/traces.jsonl "all(f['provenance'] in ('measured', 'interpolated', 'distributed') for q in d for t in q['turns'] for k, f in t['energy'].items() if k != 'machine')"
assert_json serial/traces.jsonl "all(f['hi'] - f['lo'] <= 2 * f['joules'] * {'measured': 0.02, 'interpolated': 0.1}[f['provenance']] + 1e-9 for q in d for t in q['turns'] for k, f in t['energy'].items() if k != 'machine' and f['provenance'] != 'distributed')"
assert_json serial/traces.jsonl "all(t['energy']['machine']['joules'] is None and t['energy']['machine']['reason'] for q in d for t in q['turns'])"

step "eight at a time: shares sum to the device, marked as shared out"
awk 'BEGIN { for (i = 1; i <= 24; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >many.jsonl
start_fake --bench 2 --delay-ms 60
expect_exit 0 agent run tools --dataset many.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --concurrency 8 --output many
assert_json many/traces.jsonl "len(d) == 24"
truth within many gpu=300
truth books many

step "bounds in the summary, computed again"
cat >bounds.py <<'PY'
import json, sys
run = sys.argv[1]
s = json.load(open(run + "/summary.json"))
queries = [json.loads(line) for line in open(run + "/traces.jsonl")]
n, totals, e = len(queries), s["totals"], s["efficiency"]
def near(a, b): assert abs(a - b) <= 1e-6 + 1e-9 * abs(b), (a, b)
def inside(value, b): assert b["lo"] - 1e-6 <= value <= b["hi"] + 1e-6 and b["u"] > 0, (value, b)
basis = e["basis"].split("+")
assert "gpu" in basis
for d in basis:
    b, ledger, figures = totals["bounds"][d + "_energy_joules"], s["ledger"][d], [q["energy"][d] for q in queries]
    inside(totals[d + "_energy_joules"], b)
    assert b == ledger["bounds"]["queries_j"] and s["accounts"][d]["bounds"]["attributed_j"] == b
    # No wider than the queries' own, and than what the total leaves; u has the sensor's 5 % in it.
    assert sum(f["lo"] for f in figures) <= b["lo"] + 1e-5 and b["hi"] - 1e-5 <= sum(f["hi"] for f in figures)
    assert 0.05 / 3 ** 0.5 * totals[d + "_energy_joules"] <= b["u"] + 1e-6 <= sum(f["u"] for f in figures) + 1e-5
    for key in "idle_j", "total_j": assert ledger["bounds"][key]["lo"] <= ledger[key] <= ledger["bounds"][key]["hi"]
    for part in s["parts"] + s["tools"]:
        if part["joules"][d] is not None: inside(part["joules"][d], {"u": 1, **part["bounds"][d]})
    own = [p["bounds"][d] for q in queries for p in q["parts"] if p["part"] == "decode"]
    (part,) = [p for p in s["parts"] if p["part"] == "decode"]
    near(part["bounds"][d]["lo"], sum(b["lo"] for b in own))
    near(part["bounds"][d]["hi"], sum(b["hi"] for b in own))
for side in "lo", "hi", "u":
    whole = sum(totals["bounds"][d + "_energy_joules"][side] for d in basis)
    near(e["bounds"]["mean_joules_per_query"][side], whole / n)
    if totals["resolved"]: near(e["bounds"]["joules_per_correct_answer"][side], whole / totals["resolved"])
half = (e["bounds"]["mean_joules_per_query"]["hi"] - e["bounds"]["mean_joules_per_query"]["lo"]) / 2
assert (e["withheld"] == "too_coarse") == (half > e["mean_joules_per_query"] / 2), e
assert (e["intelligence_per_joule"] is None) == (e["withheld"] is not None), e
PY
python3 bounds.py many || fail "the bounds of many"
python3 bounds.py serial || fail "the bounds of serial"
cp -r many moved
python3 - <<'PY'
import json
s = json.load(open("moved/summary.json"))
s["efficiency"]["bounds"]["mean_joules_per_query"]["lo"] = s["efficiency"]["mean_joules_per_query"] + 1
json.dump(s, open("moved/summary.json", "w"))
PY
expect_exit 1 agent validate moved
check_err "moved/summary.json: efficiency: mean_joules_per_query:"
rm -r moved

step "a counter that cannot be read is null with a reason, and the run goes on"
chmod 000 tree/intel-rapl:0/energy_uj tree/intel-rapl:0:0/energy_uj 2>/dev/null
if [ "$(id -u)" -ne 0 ]; then
    start_fake --bench 0
    expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output denied
    assert_json denied/traces.jsonl "all(q['energy']['cpu']['joules'] is None and q['energy']['cpu']['reason'] == 'permission' for q in d)"
fi
chmod 400 tree/intel-rapl:0/energy_uj tree/intel-rapl:0:0/energy_uj 2>/dev/null

step "without sensors every figure is null"
unset IPW_STUB_NVML
export IPW_POWERCAP_ROOT="$WORK/no-powercap" IPW_NVML_LIBRARY="$WORK/no-nvml.so"
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output none
assert_json none/traces.jsonl "all(q['query_gpu_energy_joules'] is None and q['query_cpu_energy_joules'] is None for q in d)"
assert_json none/summary.json "d['totals']['gpu_energy_joules'] is None"

end_test
