# The whole program in real time, against the truth: two boards of known watts and a package, 1, 4 and 32
# queries at a time.  Every query's, turn's and span's part of the truth lies within its bounds, for each
# board and for both, and the shares, waste and idle sum to what the counters moved by, exactly.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
device GPU-00000000-0000-0000-0000-000000000002 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
energy 1 counter watts=150 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree" IPW_STUB_NVML="$WORK/gpu.txt"
export IPW_NVML_LIBRARY="$IPW_BINARY_DIR/tests/fake/libnvidia-ml-stub.so"
awk 'BEGIN { for (i = 1; i <= 40; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
start_fake --bench 2 --delay-ms 20

for at_a_time in 1 4 32; do
    step "$at_a_time at a time"
    expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --sample-interval 5ms --concurrency $at_a_time --output run$at_a_time
    truth within run$at_a_time gpu=450 gpu0=300 gpu1=150
    truth books run$at_a_time
    expect_exit 0 agent ledger run$at_a_time --check --json
    assert_json "$WORK/out" "d['identical'] is True and len(d['queries']) == 40"
    assert_json "$WORK/out" "all(abs(d['balance'][k]['difference_j']) < 1e-6 for k in ('cpu', 'dram', 'gpu'))"
    assert_json "$WORK/out" "all(abs(b['difference_j']) < 1e-6 for b in d['balance']['gpu']['devices'].values())"
done

end_test
