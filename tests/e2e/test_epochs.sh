# Repeats, warm-up, the idle baseline, and models on other machines.
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

step "three epochs of four records after two warm-up queries"
start_fake --bench 1 --delay-ms 20
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --epochs 3 --warmup 2 --concurrency 2 --output repeats
check_out "pass@k      k=1 "
check_out "solved "
assert_file_lines repeats/traces.jsonl 12
assert_file_lines repeats/warmup.jsonl 2
assert_json repeats/traces.jsonl "sorted((q['query_id'], q['epoch']) for q in d) == [('q%04d' % i, e) for i in range(4) for e in range(3)]"
assert_json repeats/traces.jsonl "sorted(q['query_index'] for q in d) == list(range(2, 14))"
assert_json repeats/summary.json "d['totals']['queries'] == 12 and d['run']['planned'] == 12"
assert_json repeats/summary.json "d['ledger']['cpu']['balanced'] and d['ledger']['gpu']['warmup_j'] > 0"
truth within repeats gpu=300
truth books repeats
assert_json repeats/summary.json "d['repeats']['tasks'] == 4 and d['repeats']['epochs'] == 3 and d['repeats']['by'] == 'task'"
assert_json repeats/summary.json "(lambda m: m['method'] == 't' and m['n'] == 4 and m['lo'] < m['mean'] < m['hi'] and m['min'] <= m['mean'] <= m['max'])(d['repeats']['metrics']['cpu_energy_joules'])"
assert_json repeats/summary.json "d['repeats']['metrics']['intelligence_per_joule']['method'] == 'none'"
expect_exit 0 agent ledger repeats --check
check_out "14 of 14 queries"
check_out "of the total: warm-up"

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
# 300 W idle and 300 W at work: how near the baseline comes is a matter of the schedule, and which of
# two baselines are too far apart is not.
assert_json idle/summary.json "all(100 < d['baseline']['domains']['gpu'][k] < 900 for k in ('before_w', 'after_w'))"
assert_json idle/summary.json "all(b['net_withheld'] == ('no_baseline' if b['before_w'] is None else 'drift' if abs(b['drift_w']) > max(2, 0.1 * b['before_w']) else None) for b in d['baseline']['domains'].values())"
assert_json idle/summary.json "all((b['net_j'] is None) == (b['net_withheld'] is not None) and b['net_j'] == d['accounts'][k]['marginal_j'] for k, b in d['baseline']['domains'].items() if d['accounts'][k])"
# Net is the figure less the baseline times the seconds, query by query, whatever its sign: in books.
truth books idle
assert_json idle/traces.jsonl "all(q['accounts']['cpu']['marginal_j'] is not None for q in d)"
expect_exit 0 agent ledger idle --check

step "two boards that idle differently: each is measured by itself, and the run comes out again"
cp gpu.txt one.txt
cat >>gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000002 Stub_H200 700000
energy 1 counter watts=100 period_ms=20
EOF
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --baseline 1s --concurrency 4 --share phase --output two
assert_json two/events.jsonl "(lambda b: len(b) == 2 and 100 < b[0] < 900 and 33 < b[1] < 300)([e for e in d if e['event'] == 'run_start'][0]['data']['device_baseline_w']['gpu'])"
assert_json two/summary.json "sorted(d['accounts']['gpu']['devices']) == ['gpu0', 'gpu1']"
assert_json two/summary.json "all(round(sum(b[k] for b in d['accounts']['gpu']['devices'].values()) * 1e6) == round(d['accounts']['gpu'][k] * 1e6) for k in ('attributed_j', 'exclusive_j', 'idle_tax_j', 'waste_j'))"
truth books two
expect_exit 0 agent ledger two --check
cp one.txt gpu.txt

step "case 35: of a model on another machine this machine's GPU says nothing"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --model-host remote --output remote
assert_json remote/traces.jsonl "all(q['energy']['gpu']['joules'] is None and q['energy']['gpu']['reason'] == 'remote' and q['energy']['cpu']['joules'] is not None for q in d)"
assert_json remote/traces.jsonl "all(q['lm_energy_measurable'] is False for q in d)"
assert_json remote/traces.jsonl "all(s['energy']['cpu']['reason'] == 'remote' for q in d for t in q['turns'] for s in t['spans'] if s['kind'] != 'tool')"
assert_json remote/summary.json "d['efficiency']['intelligence_per_joule'] is None and d['efficiency']['basis'] is None"
assert_json remote/manifest.json "d['hardware']['basis']['gpu'] is None and d['hardware']['basis']['cpu'] is not None"
# Nor are the client's joules the model's domain by domain.
assert_json remote/summary.json "all(e is None for k in ('efficiency', 'normalized_efficiency') for e in (d[k] or {'by_domain': {}})['by_domain'].values())"
expect_exit 0 agent ledger remote --check
expect_exit 2 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --energy there --output nothing

step "what names a query names the same one in every mode, the warm-up counted or not"
expect_exit 0 agent run react --dataset gaia --limit 3 --model demo --warmup 1 --output named -q
first=$(json named/traces.jsonl 'd[0]["query_id"]')
second=$(json named/traces.jsonl 'd[1]["query_id"]')
# An id, the beginning of it, the record as datasets number them, query_index: the warm-up has index 0.
for name in "$second" "$(echo "$second" | cut -c1-8)" q0001 2; do
    expect_exit 0 agent replay named --query "$name"
    assert_contains out "$(echo "$second" | cut -c1-20)"
    assert_lacks out "$(echo "$first" | cut -c1-20)"
    expect_exit 0 agent replay named --query "$name" --follow
    assert_contains out "$(echo "$second" | cut -c1-5)"
    for mode in hermetic tools workload; do
        rm -rf again
        expect_exit 0 agent replay named --query "$name" --mode $mode --output again $([ $mode = workload ] && echo --model demo)
        assert_json again/traces.jsonl "[q['query_id'] for q in d] == ['$second']"
    done
done
for name in q0000 0; do
    expect_exit 0 agent replay named --query $name
    assert_contains out "$(echo "$first" | cut -c1-20)"
done
expect_exit 3 agent replay named --query q0003
check_err 'there is no query "q0003"'

end_test
