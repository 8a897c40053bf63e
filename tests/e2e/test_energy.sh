# Joules that can be checked by arithmetic: a powercap tree that draws known watts (fake_powercap), a
# GPU that does (libnvidia-ml-stub.so), and a server that takes known times.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")
[ -x "$FAKES_DIR/fake_powercap" ] || fail "fake_powercap is not built"

mkdir tree
"$FAKES_DIR/fake_powercap" "$WORK/tree" --watts-package 80 --watts-dram 5 --interval-ms 1 \
    --seconds 120 >tree.out 2>&1 &
FAKES="$FAKES $!"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -f tree/intel-rapl:0/energy_uj ] && break
    sleep 0.1
done
[ -f tree/intel-rapl:0/energy_uj ] || fail "the fake tree did not appear"
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

awk 'BEGIN { for (i = 1; i <= 4; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

# near A B PERCENT: |A - B| <= PERCENT % of B, inside a Python expression
NEAR='(lambda a, b, p: a is not None and abs(a - b) <= b * p / 100)'

step "one query at a time: every turn costs its seconds times the watts"
start_fake --bench 2 --delay-ms 200
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --output serial
assert_json serial/traces.jsonl "len(d) == 4 and all(len(q['turns']) == 3 for q in d)"
assert_json serial/traces.jsonl "all($NEAR(t['cpu_energy_joules'], 80 * t['wall_clock_s'], 5) for q in d for t in q['turns'])"
assert_json serial/traces.jsonl "all($NEAR(t['dram_energy_joules'], 5 * t['wall_clock_s'], 5) for q in d for t in q['turns'])"
assert_json serial/traces.jsonl "all($NEAR(t['gpu_energy_joules'], 300 * t['wall_clock_s'], 6) for q in d for t in q['turns'])"
assert_json serial/traces.jsonl "all($NEAR(q['query_cpu_energy_joules'], 80 * q['total_wall_clock_s'], 3) for q in d)"
assert_json serial/traces.jsonl "all($NEAR(t['cpu_power_avg_watts'], 80, 5) for q in d for t in q['turns'])"

step "the parts of a query sum to the query"
assert_json serial/traces.jsonl "all(abs(sum(t['energy'][k]['joules'] for t in q['turns']) + q['energy_before'][k]['joules'] - q['energy'][k]['joules']) <= 1e-9 * max(1, q['energy'][k]['joules']) for q in d for k in ('gpu', 'cpu', 'dram'))"

step "every figure says how it was obtained"
# The CPU counter moves each millisecond; the GPU's steps of 20 ms and the DRAM's unknown maximum
# leave wide bounds, which makes their figures "distributed" by the rule of energy.md 2h.
assert_json serial/traces.jsonl "all(t['energy']['cpu']['provenance'] in ('measured', 'interpolated') for q in d for t in q['turns'])"
assert_json serial/traces.jsonl "all(t['energy'][k]['provenance'] in ('measured', 'interpolated', 'distributed') for q in d for t in q['turns'] for k in ('gpu', 'dram'))"
assert_json serial/traces.jsonl "all(t['energy']['machine']['joules'] is None and t['energy']['machine']['reason'] for q in d for t in q['turns'])"

step "the ledger balances, and its total is the counter's own difference"
assert_json serial/summary.json "all(abs(v['queries_j'] + v['idle_j'] - v['total_j']) <= 1e-5 for k, v in d['ledger'].items() if v.get('total_j') is not None)"
assert_json serial/summary.json "$NEAR(d['ledger']['cpu']['total_j'], 80 * d['own_overhead']['wall_s'], 3)"

step "eight at a time: shares sum to the device, marked as shared out"
awk 'BEGIN { for (i = 1; i <= 24; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >many.jsonl
start_fake --bench 2 --delay-ms 60
expect_exit 0 agent run tools --dataset many.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --concurrency 8 --output many
assert_json many/traces.jsonl "len(d) == 24"
assert_json many/summary.json "all(abs(v['queries_j'] + v['idle_j'] - v['total_j']) <= 1e-4 for k, v in d['ledger'].items() if v.get('total_j') is not None)"
assert_json many/traces.jsonl "sum(q['query_cpu_energy_joules'] for q in d) <= 80 * (max(q['end_ns'] for q in d) - min(q['start_ns'] for q in d)) / 1e9 * 1.03"
assert_json many/traces.jsonl "sum(q['energy']['cpu']['provenance'] == 'distributed' for q in d) >= 20"

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
