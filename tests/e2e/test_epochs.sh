# Repeats, warm-up, the idle baseline, and models on other machines.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")
[ -x "$FAKES_DIR/fake_powercap" ] || fail "fake_powercap is not built"

mkdir tree
"$FAKES_DIR/fake_powercap" "$WORK/tree" --watts-package 80 --watts-dram 5 --interval-ms 1 \
    --seconds 120 >tree.out 2>&1 &
FAKES="$FAKES $!"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -f tree/intel-rapl:0:0/energy_uj ] && break
    sleep 0.1
done
[ -f tree/intel-rapl:0:0/energy_uj ] || fail "the fake tree did not appear"
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
awk 'BEGIN { for (i = 1; i <= 4; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

step "three epochs of four records after two warm-up queries"
start_fake --bench 1 --delay-ms 20
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --epochs 3 --warmup 2 --concurrency 2 --output repeats
assert_file_lines repeats/traces.jsonl 12
assert_file_lines repeats/warmup.jsonl 2
assert_json repeats/traces.jsonl "sorted((q['query_id'], q['epoch']) for q in d) == [('q%04d' % i, e) for i in range(4) for e in range(3)]"
assert_json repeats/traces.jsonl "sorted(q['query_index'] for q in d) == list(range(2, 14))"
assert_json repeats/summary.json "d['totals']['queries'] == 12 and d['run']['planned'] == 12"
assert_json repeats/summary.json "d['ledger']['cpu']['balanced'] and d['ledger']['cpu']['warmup_j'] > 0"
assert_json repeats/summary.json "d['repeats']['tasks'] == 4 and d['repeats']['epochs'] == 3 and d['repeats']['by'] == 'task'"
assert_json repeats/summary.json "(lambda m: m['method'] == 't' and m['n'] == 4 and m['lo'] < m['mean'] < m['hi'] and m['min'] <= m['mean'] <= m['max'])(d['repeats']['metrics']['cpu_energy_joules'])"
assert_json repeats/summary.json "d['repeats']['metrics']['intelligence_per_joule']['method'] == 'none'"
expect_exit 0 agent ledger repeats --check
check_out "14 of 14 queries"

step "twenty records and more: the bootstrap, with its seed"
awk 'BEGIN { for (i = 1; i <= 24; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >many.jsonl
expect_exit 0 agent run tools --dataset many.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --concurrency 8 --output many
assert_json many/summary.json "(lambda r: r['metrics']['joules']['method'] == 'bootstrap' and r['metrics']['intelligence_per_joule']['method'] == 'bootstrap' and r['seed'] > 0)(d['repeats'])"

step "efficiency in all its units, with their definitions"
assert_json many/summary.json "all(d['efficiency'][k] > 0 for k in ('joules_per_output_token', 'tokens_per_joule', 'energy_delay_product', 'joules_per_correct_answer'))"
assert_json many/summary.json "abs(d['efficiency']['joules_per_output_token'] * d['efficiency']['tokens_per_joule'] - 1) < 1e-9"
assert_json many/summary.json "all(d['definitions'][k] for k in ('ipj', 'ipw', 'joules_per_output_token', 'tokens_per_joule', 'energy_delay_product', 'marginal_j', 'waste_j', 'idle_tax_j'))"

step "the idle baseline before and after: gross stays, net beside it"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --baseline 1s --output idle
assert_json idle/summary.json "abs(d['baseline']['domains']['cpu']['before_w'] - 80) < 3 and abs(d['baseline']['domains']['cpu']['after_w'] - 80) < 3"
assert_json idle/summary.json "d['baseline']['domains']['cpu']['net_withheld'] is None and d['baseline']['domains']['machine']['net_withheld'] == 'no_baseline'"
# All of it would have been drawn anyway: next to nothing is left, and its sign is what it is.
# Net is gross less the idle power that was measured, over the seconds that the queries took.
assert_json idle/summary.json "abs((d['accounts']['cpu']['attributed_j'] - d['accounts']['cpu']['marginal_j']) / d['totals']['wall_clock_s'] - 80) < 4"
assert_json idle/traces.jsonl "all(q['accounts']['cpu']['marginal_j'] is not None for q in d)"
assert_json idle/summary.json "d['ledger']['cpu']['balanced']"
expect_exit 0 agent ledger idle --check

step "two boards that idle differently: each is measured by itself, and the run comes out again"
cp gpu.txt one.txt
cat >>gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000002 Stub_H200 700000
energy 1 counter watts=100 period_ms=20
EOF
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --baseline 1s --concurrency 4 --share phase --output two
assert_json two/events.jsonl "(lambda b: len(b) == 2 and abs(b[0] - 300) < 15 and abs(b[1] - 100) < 5)([e for e in d if e['event'] == 'run_start'][0]['data']['device_baseline_w']['gpu'])"
assert_json two/summary.json "abs(d['baseline']['domains']['gpu']['before_w'] - 400) < 20"
expect_exit 0 agent ledger two --check
cp one.txt gpu.txt

step "case 35: of a model on another machine this machine's GPU says nothing"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --energy remote --output remote
assert_json remote/traces.jsonl "all(q['energy']['gpu']['joules'] is None and q['energy']['gpu']['reason'] == 'remote' and q['energy']['cpu']['joules'] > 0 for q in d)"
assert_json remote/traces.jsonl "all(q['lm_energy_measurable'] is False for q in d)"
assert_json remote/traces.jsonl "all(s['energy']['cpu']['reason'] == 'remote' for q in d for t in q['turns'] for s in t['spans'] if s['kind'] != 'tool')"
assert_json remote/summary.json "d['efficiency']['intelligence_per_joule'] is None and d['efficiency']['basis'] is None"
expect_exit 0 agent ledger remote --check
expect_exit 2 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --energy there --output nothing

end_test
