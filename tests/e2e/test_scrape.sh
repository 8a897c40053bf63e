# Energy that an exporter publishes: a page of its format, served by any web server, is read and its
# joules are booked.  The page is rewritten while the run goes on.
# Sanitizer: pages of exporters.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/exporter.sh"

awk 'BEGIN { for (i = 1; i <= 4; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl

step "a web server"
serve_pages 127.0.0.1

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
exporter dcgm_two
run dcgm --telemetry "prometheus=$PAGE"
booked dcgm gpu
assert_contains dcgm/power.jsonl "127.0.0.1:$PORT/gpu0"
# A blank sentinel is no reading.
assert_lacks dcgm/power.jsonl 9223372036854775
stop_exporter


step "node_exporter's page: the package, and not its cores a second time"
exporter node_cores
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
refused "https://127.0.0.1:$PORT/metrics" "https is not supported"
kill $server && wait $server 2>/dev/null
refused "$PAGE" "Connection refused"

end_test
