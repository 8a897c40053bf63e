# Joules in attempts that failed are booked to their query as waste, and the books still balance.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

step "a busy server, then a cut stream, then the answer"
cat >busy.llm <<'EOF'
delay 400
status 503
header Retry-After: 0
body busy
---
delay 600
text the answer is 42
EOF
printf '{"question":"What is it?","answer":"42"}\n' >rows.jsonl
start_fake --script busy.llm
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --output waste
assert_json waste/traces.jsonl "d[0]['completed'] and d[0]['turns'][0]['attempts'] == 2"
# The failed attempt's joules, whatever they were; the second one is no waste.
FAILED="[s for s in d[0]['turns'][0]['spans'] if s['kind'] == 'lm'][0]"
assert_json waste/traces.jsonl "$FAILED['outcome'] != 'ok' and $FAILED['end_s'] - $FAILED['start_s'] >= 0.4"
assert_json waste/traces.jsonl "all(round(d[0]['accounts'][k]['waste_j'] * 1e6) == round($FAILED['energy'][k]['joules'] * 1e6) for k in ('gpu', 'cpu', 'dram'))"
truth within waste gpu=300
assert_json waste/traces.jsonl "d[0]['accounts']['gpu']['waste_j'] < d[0]['query_gpu_energy_joules']"
truth books waste

step "ledger says the same from the files"
expect_exit 0 agent ledger waste --check

end_test
