#!/bin/sh
# Where no sensor is: a named model's estimate, beside a null and in no total.
. "$(dirname "$0")/lib.sh"

start_fake
run="agent run single --dataset gaia --limit 3 --base-url $BASE_URL --model m"

STEP="an estimate by the model"
expect_exit 0 $run -o est
check_out "--no-estimate"
check_out "vCPU"
assert_json est/traces.jsonl "all(q['energy']['cpu']['joules'] is None for q in d)"
assert_json est/traces.jsonl "all(q['energy']['cpu']['estimate']['by'] == 'model' for q in d)"
assert_json est/traces.jsonl "all(0 < q['energy']['cpu']['lo'] <= q['energy']['cpu']['estimate']['joules'] <= q['energy']['cpu']['hi'] for q in d)"
assert_json est/traces.jsonl "all('estimate' in t['energy']['cpu'] for q in d for t in q['turns'])"
# In no total, and no efficiency from it.
assert_json est/summary.json "d['totals']['cpu_energy_joules'] is None"
assert_json est/summary.json "d['efficiency']['basis'] is None"
assert_json est/summary.json "d['totals']['with_estimates']['cpu'] > 0"
expect_exit 0 agent ledger est --check

STEP="switched off"
expect_exit 0 $run -o off --no-estimate
assert_json off/traces.jsonl "all('estimate' not in q['energy']['cpu'] for q in d)"
expect_exit 0 $run -o none --telemetry none
assert_json none/traces.jsonl "all('estimate' not in q['energy']['cpu'] for q in d)"

STEP="a sensor is there"
start_tree pc --watts-package 80
IPW_POWERCAP_ROOT="$WORK/pc"
expect_exit 0 $run -o real
IPW_POWERCAP_ROOT="$WORK/no-powercap"
assert_json real/power.jsonl "all(s['name'] != 'model' for s in d[0]['sources'])"

STEP="the ways to a measured machine that there were"
expect_exit 2 agent calibrate --telemetry battery
check_err "there is no calibrate any more"
check_err "ipw-agent meter RUN --book"
expect_exit 2 $run -o gone --telemetry auto,meminfo
check_err "unknown sensor 'meminfo'"

end_test
