# A sensor that is there and cannot be read: the domain that it stands for is null for that reason, and the run says
# what the driver said; all others go on.
. "$(dirname "$0")/lib.sh"

export IPW_NVML_LIBRARY="$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
printf '{"question":"Question %d?","answer":"42"}\n' 1 2 >rows.jsonl
start_tree tree --watts-package 80 --interval-ms 2 --seconds 600
start_fake --bench 0 --delay-ms 300

# told NAME ARGS...: a run of it
told() {
    name=$1
    shift
    expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output "$name" "$@"
}
# reason NAME DOMAIN REASON
reason() {
    assert_json "$1/traces.jsonl" "len(d) == 2 and all(q['energy']['$2']['joules'] is None and q['energy']['$2']['reason'] == '$3' for q in d)"
}

step "a driver that lets nobody in"
echo "init 4" >gpu.txt
IPW_POWERCAP_ROOT="$WORK/tree" told denied
reason denied gpu permission
assert_json denied/summary.json '"nvml: " in d["energy_note"] and d["ledger"]["cpu"]["balanced"] is True'
assert_json denied/traces.jsonl 'all(q["energy"]["cpu"]["joules"] > 0 and q["energy"]["machine"]["reason"] == "no_sensor" for q in d)'

step "two that fail are told side by side; each domain has the reason of its own sensor"
mkdir -p broken/intel-rapl:0
echo package-0 >broken/intel-rapl:0/name
echo 262143328850 >broken/intel-rapl:0/max_energy_range_uj
ln -s energy_uj broken/intel-rapl:0/energy_uj # leads to itself: nobody can open it
IPW_POWERCAP_ROOT="$WORK/broken" told both --no-estimate
reason both gpu permission
reason both cpu no_sensor
reason both dram no_sensor
assert_json both/summary.json '"; " in d["energy_note"] and "nvml: " in d["energy_note"] and "rapl: " in d["energy_note"]'

step "a model beside the sensor that fails is told as what it is"
IPW_POWERCAP_ROOT="$WORK/broken" told model
assert_json model/summary.json '"rapl: " in d["energy_note"] and "nvml: " in d["energy_note"]'

step "switched off, whatever the drivers say"
told off --telemetry none
for domain in cpu dram gpu machine; do reason off $domain switched_off; done
assert_json off/summary.json 'd["energy_note"] == "sensors are switched off (--telemetry none)"'

step "a sensor that was asked for by name has to be there"
expect_exit 1 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output named --telemetry nvml
check_err "--telemetry nvml: "
[ ! -e named/traces.jsonl ] || [ ! -s named/traces.jsonl ] || fail "queries were run without it"
damaged named

step "--undo-mean is gone, and says what to do"
expect_exit 2 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --undo-mean
check_err "there is no --undo-mean any more"

end_test
