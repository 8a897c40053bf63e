# A model on another machine: each documented way of reading that machine's energy gives joules per
# answer, accounts and the joules of the model's spans, whatever domain the page tells.  The machine
# is this one by its own address, which is not the loopback, so that its series count as remote.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/exporter.sh"

ADDRESS=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m 1 '^[0-9.]*$')
[ -n "$ADDRESS" ] || skip "this machine has no address but the loopback"

awk 'BEGIN { for (i = 1; i <= 4; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl

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

# Most of it waits for pages, so all go at the same time, each with a web server of its own.
web() { # FORMAT
    cp ../rows.jsonl ../exporter.py .
    serve_pages "$ADDRESS"
    exporter "$1"
}
one_domain() { # FORMAT DOMAIN
    step "$1: $2 only"
    web "$1"
    run "$1" --telemetry "prometheus=$PAGE"
    told "$1" "$2"
}
dcgm() { one_domain dcgm gpu; }
scaphandre() { one_domain scaphandre machine; }
kepler() { one_domain kepler cpu; }
node() { one_domain node cpu; }

own_sensors() {
    step "the client's own sensors stay out of the model's figures"
    start_tree cap --watts-package 30
    web scaphandre
    export IPW_POWERCAP_ROOT="$WORK/cap"
    run beside --telemetry rapl --telemetry "prometheus=$PAGE"
    told beside machine
    assert_json beside/traces.jsonl "all(q['energy']['cpu']['joules'] > 0 for q in d)"
    assert_json beside/traces.jsonl "all(s['energy']['cpu']['reason'] == 'remote' for q in d for t in q['turns'] for s in t['spans'] if s['kind'] != 'tool')"
    assert_json beside/traces.jsonl "all(q['accounts']['cpu']['waste_j'] is None for q in d)"
    assert_json beside/summary.json "d['efficiency']['by_domain']['cpu'] is None"
}

both_machines() {
    step "a domain of both machines is that of the model's machine"
    start_tree cap --watts-package 30
    web node
    export IPW_POWERCAP_ROOT="$WORK/cap"
    run both --telemetry rapl --telemetry "prometheus=$PAGE"
    told both cpu
    assert_json both/traces.jsonl "all(len(q['energy']['cpu']['sources']) == 1 and '$ADDRESS' in q['energy']['cpu']['sources'][0] for q in d)"
    assert_json both/manifest.json "d['hardware']['basis']['cpu'].startswith('remote: ')"
}

listens() {
    step "ipw-agent telemetry --listen, of a meter of the whole machine"
    cp ../rows.jsonl .
    cat >meter.sh <<'EOS'
#!/bin/sh
while :; do echo 95.5; sleep 0.1; done
EOS
    chmod +x meter.sh
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
}

for function in dcgm scaphandre kepler node own_sensors both_machines listens; do beside $function; done
await_beside

end_test
