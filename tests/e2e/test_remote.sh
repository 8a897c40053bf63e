# A model on another machine: each documented way of reading that machine's energy gives joules per
# answer, accounts and the joules of the model's spans, whatever domain the page tells.  The machine
# is this one by its own address, which is not the loopback, so that its series count as remote.
. "$(dirname "$0")/lib.sh"

ADDRESS=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m 1 '^[0-9.]*$')
[ -n "$ADDRESS" ] || skip "this machine has no address but the loopback"

awk 'BEGIN { for (i = 1; i <= 4; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
mkdir site
mkfifo said

step "a web server"
PYTHONUNBUFFERED=1 python3 -m http.server 0 --bind "$ADDRESS" --directory site >said 2>server.log &
server=$!
FAKES="$FAKES $server"
read -r line <said
PORT=$(echo "$line" | sed -n 's/.* port \([0-9]*\) .*/\1/p')
[ -n "$PORT" ] || fail "no port in: $line"
PAGE=http://$ADDRESS:$PORT/metrics

# Keeps a page up to date: format FORMAT, 100 W.
cat >exporter.py <<'PY'
import os, sys, time
pages = {
    "dcgm": 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",UUID="GPU-1",modelName="H100"}} {mj:.0f}\n',
    "scaphandre": '# TYPE scaph_host_power_microwatts gauge\n'
                  'scaph_host_power_microwatts 100000000\n',
    "kepler": 'kepler_node_cpu_joules_total{{zone="package",index="0",path="/sys/x",node_name="n"}} {j:.6f}\n',
    "node": '# TYPE node_rapl_package_joules_total counter\n'
            'node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0"}} {j:.6f}\n',
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
    FAKES="$FAKES $writer"
    read -r line <said
    assert_eq "$line" up
}
stop_exporter() { kill $writer && wait $writer 2>/dev/null; }

start_fake --bench 3 --delay-ms 250
run() { # DIR ARGS...
    dir=$1
    shift
    expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --model-host remote --output "$dir" "$@"
}

# told DIR DOMAIN: the domain gives efficiency, accounts and the joules of every span.
told() {
    assert_json "$1/summary.json" "d['efficiency']['basis'] == '$2'"
    assert_json "$1/summary.json" "d['efficiency']['mean_joules_per_query'] > 0"
    assert_json "$1/summary.json" "d['efficiency']['by_domain']['$2']['mean_joules_per_query'] > 0"
    assert_json "$1/summary.json" "d['ledger']['$2']['balanced'] is True"
    assert_json "$1/traces.jsonl" "all(q['remote_domains'] == ['$2'] for q in d)"
    assert_json "$1/traces.jsonl" "all(q['lm_energy_measurable'] is True for q in d)"
    assert_json "$1/traces.jsonl" "all(q['accounts']['$2'][k] is not None for q in d for k in ('waste_j', 'idle_tax_j'))"
    # A gauge cannot resolve the short spans here: they say so, and not that the model is elsewhere.
    assert_json "$1/traces.jsonl" "all(s['energy']['$2']['joules'] is not None or '$2' == 'machine' and s['energy']['$2']['reason'] == 'below_resolution' for q in d for t in q['turns'] for s in t['spans'])"
    expect_exit 0 agent ledger "$1" --check
}

for format in dcgm:gpu scaphandre:machine kepler:cpu node:cpu; do
    name=${format%:*} domain=${format#*:}
    step "$name: $domain only"
    exporter "$name"
    run "$name" --telemetry "prometheus=$PAGE"
    told "$name" "$domain"
    stop_exporter
done

step "the client's own sensors stay out of the model's figures"
start_tree cap --watts-package 30
exporter scaphandre
export IPW_POWERCAP_ROOT="$WORK/cap"
run beside --telemetry rapl --telemetry "prometheus=$PAGE"
told beside machine
assert_json beside/traces.jsonl "all(q['energy']['cpu']['joules'] > 0 for q in d)"
assert_json beside/traces.jsonl "all(s['energy']['cpu']['reason'] == 'remote' for q in d for t in q['turns'] for s in t['spans'] if s['kind'] != 'tool')"
assert_json beside/traces.jsonl "all(q['accounts']['cpu']['waste_j'] is None for q in d)"
assert_json beside/summary.json "d['efficiency']['by_domain']['cpu'] is None"
stop_exporter

step "a domain of both machines is that of the model's machine"
exporter node
run both --telemetry rapl --telemetry "prometheus=$PAGE"
told both cpu
assert_json both/traces.jsonl "all(len(q['energy']['cpu']['sources']) == 1 and '$ADDRESS' in q['energy']['cpu']['sources'][0] for q in d)"
assert_json both/manifest.json "d['hardware']['basis']['cpu'].startswith('remote: ')"
stop_exporter
kill $server && wait $server 2>/dev/null

step "ipw-agent telemetry --listen, of a meter of the whole machine"
cat >meter.sh <<'EOS'
#!/bin/sh
while :; do echo 95.5; sleep 0.1; done
EOS
chmod +x meter.sh
export IPW_POWERCAP_ROOT="$WORK/no-powercap"
mkfifo listen.out
"$IPW_AGENT" telemetry --telemetry exec="$WORK/meter.sh" --listen "$ADDRESS:0" --expose --duration 60s \
    >listen.out 2>listen.err &
listener=$!
FAKES="$FAKES $listener"
exec 3<listen.out
read -r word url <&3
assert_eq "$word" listening
run listen --telemetry "prometheus=$url"
told listen machine

end_test
