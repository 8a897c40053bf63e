# Energy that an exporter publishes: a page of its format, served by any web server, is read and its
# joules are booked.  The page is rewritten while the run goes on.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 4; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
mkdir site
mkfifo said

step "a web server"
PYTHONUNBUFFERED=1 python3 -m http.server 0 --bind 127.0.0.1 --directory site >said 2>server.log &
server=$!
read -r line <said
PORT=$(echo "$line" | sed -n 's/.* port \([0-9]*\) .*/\1/p')
[ -n "$PORT" ] || fail "no port in: $line"
PAGE=http://127.0.0.1:$PORT/metrics

# Keeps a page up to date: format FORMAT, 100 W.
cat >exporter.py <<'PY'
import os, sys, time
pages = {
    "dcgm": '# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n'
            'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",UUID="GPU-1",modelName="H100"}} {mj:.0f}\n'
            'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="1",UUID="GPU-2",modelName="H100"}} 9223372036854775794\n'
            'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-1",modelName="H100"}} 100.0\n',
    "node": '# TYPE node_rapl_package_joules_total counter\n'
            'node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0"}} {j:.6f}\n'
            'node_rapl_core_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0:0"}} {j:.6f}\n'
            'node_cpu_seconds_total{{cpu="0",mode="idle"}} 1.5e+06\n',
}
start = time.monotonic()
for i in range(10**9):
    j = 5000 + 100 * (time.monotonic() - start)
    with open("site/next", "w") as f:
        f.write(pages[sys.argv[1]].format(j=j, mj=j * 1000))
    os.rename("site/next", "site/metrics")
    if i == 0:
        print("up", flush=True)
    time.sleep(0.05)
PY
exporter() { # FORMAT: returns when the page is there
    python3 exporter.py "$1" >said &
    writer=$!
    read -r line <said
    assert_eq "$line" up
}
stop_exporter() { kill $writer && wait $writer 2>/dev/null; }

# booked DIR DOMAIN: some 100 W over the run (the page is written late on a busy machine), in balance, and shared among the queries by their time.
booked() {
    assert_json "$1/summary.json" "d['ledger']['$2']['balanced'] is True"
    assert_json "$1/summary.json" "33 < d['ledger']['$2']['total_j'] / d['own_overhead']['wall_s'] < 300"
    assert_json "$1/traces.jsonl" "all(q['energy']['$2']['joules'] is not None for q in d)"
    assert_json "$1/traces.jsonl" "33 < sum(q['energy']['$2']['joules'] for q in d) / sum(q['total_wall_clock_s'] for q in d) < 300"
}

start_fake --bench 3 --delay-ms 250
run() { # DIR ARGS...
    dir=$1
    shift
    expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output "$dir" "$@"
}

step "the DCGM exporter's page"
exporter dcgm
run dcgm --telemetry "prometheus=$PAGE"
booked dcgm gpu
assert_contains dcgm/power.jsonl "127.0.0.1:$PORT/gpu0"
# A blank sentinel is no reading.
assert_lacks dcgm/power.jsonl 9223372036854775
stop_exporter


step "node_exporter's page: the package, and not its cores a second time"
exporter node
run node --telemetry "prometheus=$PAGE"
booked node cpu
stop_exporter

step "a sensor that was asked for and cannot be read is said"
refused() { # URL MESSAGE
    expect_exit 1 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output refused --telemetry "prometheus=$1"
    check_err "$2"
}
mv site/metrics site/old
refused "$PAGE" "HTTP status 404"
echo 'up 1' >site/metrics
refused "$PAGE" "no known series of energy or power"
refused "https://127.0.0.1:$PORT/metrics" "https is not supported here"
kill $server && wait $server 2>/dev/null
refused "$PAGE" "Connection refused"

end_test
