#!/bin/sh
# Where no sensor is: a named model's estimate, beside a null and in no total; and a machine that was
# calibrated once against a meter.
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

STEP="calibrated against a meter"
# A machine whose load and power are known: the meter is also the one who says how busy it is.
mkdir proc
printf 'processor : 0\nmodel name : a test\nprocessor : 1\n' >proc/cpuinfo
cat >meter.py <<'EOF'
import os, sys, time
start, busy, idle = time.monotonic(), 0.0, 0.0
last = start
while True:
    now = time.monotonic()
    u = min((now - start) / 5, 1)  # it gets busier
    busy, idle, last = busy + u * (now - last) * 1000, idle + (1 - u) * (now - last) * 1000, now
    with open("proc/stat.tmp", "w") as f:
        f.write("cpu  %d 0 0 %d 0 0 0 0\n" % (busy, idle))
    os.rename("proc/stat.tmp", "proc/stat")
    print("%.3f" % (10 + 30 * u), flush=True)
    time.sleep(0.02)
EOF
echo "cpu  0 0 0 1 0 0 0 0" >proc/stat
export IPW_PROC_ROOT="$WORK/proc"
expect_exit 2 agent calibrate
check_err "needs a meter"
expect_exit 0 agent calibrate --telemetry "exec=python3 $WORK/meter.py" --step 1200ms
check_out "calibration.json"
assert_json home/config/ipw-agent/calibration.json "abs(d['idle_w'] - 10) < 3 and abs(d['full_w'] - 40) < 3"
assert_json home/config/ipw-agent/calibration.json "len(d['points']) == 4 and d['cpu'] == 'a test'"
expect_exit 0 $run -o cal
assert_json cal/traces.jsonl "all(q['energy']['machine']['joules'] is None for q in d)"
assert_json cal/traces.jsonl "all(q['energy']['machine']['estimate']['by'] == 'calibrated' for q in d)"
assert_json cal/traces.jsonl "all('estimate' not in q['energy']['cpu'] for q in d)"

STEP="another machine's line does not count"
printf 'processor : 0\nmodel name : another\n' >proc/cpuinfo
expect_exit 0 $run -o other
assert_json other/traces.jsonl "all(q['energy']['cpu']['estimate']['by'] == 'model' for q in d)"
printf '{"idle_w":' >home/config/ipw-agent/calibration.json
expect_exit 0 $run -o torn
assert_contains torn/power.jsonl "calibration.json"

STEP="a meter that says nothing"
expect_exit 1 agent calibrate --telemetry "exec=sleep 100" --step 1s
check_err "exec=sleep 100: no line like"

end_test
