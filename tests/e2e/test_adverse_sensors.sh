# Sensors that count, but wrong: what a run prints of them, writes of them, and refuses to compute from them.
# unit.ledger.adverse_sensors has all kinds of wrong readings; here some go through the whole program.
# No sanitizer: unit.energy.trust, unit.energy.counter and unit.ledger.adverse_sensors run this C.
. "$(dirname "$0")/lib.sh"

STUB="$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so"
printf '{"question":"Question %d?","answer":"42"}\n' 1 2 3 >rows.jsonl
cat >short.lua <<'LUA'
local ipw, llm, proc = require "ipw", require "ipw.llm", require "ipw.proc"
return { name = "short", run = function(query)
  local reply = llm.chat { messages = { llm.user(query.prompt) } }
  ipw.sleep(query.prompt:find "1" and 0.1 or 0.9)
  return reply.text
end }
LUA
start_fake --bench 0 --delay-ms 100

# live NAME ARGS...: a run of three queries, the first one over before anything is judged
live() {
    name=$1
    shift
    expect_exit 0 agent run short.lua --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output "$name" "$@"
    cp out "$name.out"
    expect_exit 0 agent ledger "$name" --check
    expect_exit 0 agent validate "$name"
}
# unknown NAME DOMAIN REASON: no query, no total and no efficiency of the run has the domain's energy
unknown() {
    assert_json "$1/traces.jsonl" "[q['energy']['$2'].get('reason') for q in d] == ['$3'] * 3 and all(q['energy']['$2'].get('joules') is None for q in d)"
    assert_json "$1/summary.json" "d['totals']['$2_energy_joules'] is None and d['ledger']['$2']['total_j'] is None and d['efficiency']['by_domain']['$2'] is None"
    assert_json "$1/manifest.json" "any(not t['believed'] and t['reason'] == '$3' for t in d['hardware']['self_test'])"
    assert_json "$1/events.jsonl" "[e['data']['reason'] for e in d if e.get('name') == 'sensor_doubted'] == ['$3']"
}
# right NAME DOMAIN WATTS: each query has the truth within its bounds; the stand-in writes up to 100 ms late on a busy machine
right() {
    assert_json "$1/traces.jsonl" "all(q['energy']['$2']['lo'] - 0.1 * $3 <= $3 * q['total_wall_clock_s'] <= q['energy']['$2']['hi'] + 0.1 * $3 for q in d)"
}
board() {
    printf 'device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000\n' >gpu.txt
    for line in "$@"; do printf '%s\n' "$line" >>gpu.txt; done
    export IPW_NVML_LIBRARY="$STUB" IPW_STUB_NVML="$WORK/gpu.txt"
}

half() {
    cp ../rows.jsonl ../short.lua .
    step "a counter at half of its gauge: both are told, no joule is"
    board "energy 0 counter watts=105" "power 0 gauge watts=210"
    live half
    unknown half gpu contradicted
    assert_json half/summary.json "'gpu0 shows 10' in d['note'] and 'its gauge 210 W: not believed' in d['note']"
    assert_contains half.out "GPU (contradicted)"
    expect_exit 0 agent telemetry --json
    assert_json out "[c['believed'] for c in d['channels'] if c['name'] == 'gpu0'] == [False]"
    expect_exit 0 agent list sensors
    check_out "its gauge 210 W: not believed"
    expect_exit 0 agent doctor --base-url "$BASE_URL"
    check_out "its gauge 210 W: not believed"
    expect_exit 0 agent compare half half --json
    assert_json out "d['metrics']['gpu_joules']['a'] is None and d['metrics']['joules']['a'] is None"
}

tiny() {
    cp ../rows.jsonl ../short.lua .
    step "a counter at a thousandth of its gauge, and one of 0.3 W"
    board "energy 0 counter watts=0.21" "power 0 gauge watts=210"
    live thousandth
    unknown thousandth gpu contradicted
    board "energy 0 counter watts=0.3"
    live tiny
    unknown tiny gpu stuck
}

parts() {
    cp ../rows.jsonl ../short.lua .
    step "a platform below its own package: the package counts, the platform does not"
    start_tree psys --watts-package 200 --watts-dram 20 --watts-psys 5
    export IPW_POWERCAP_ROOT="$WORK/psys"
    live psys
    unknown psys machine contradicted
    right psys cpu 200
    assert_json psys/summary.json "d['efficiency']['basis'] == 'cpu+dram'"
    step "a wall meter below the package"
    sed -i 's/0.1 or 0.9/0.1 or 1.5/' short.lua
    printf '#!/bin/sh\nwhile :; do echo 5; sleep 0.1; done\n' >five.sh
    chmod +x five.sh
    live wall --telemetry rapl,exec=./five.sh
    unknown wall machine contradicted
    right wall cpu 200
    step "a constant meter that goes on delivering is a meter"
    printf '#!/bin/sh\nwhile :; do echo 395.5; sleep 0.1; done\n' >steady.sh
    chmod +x steady.sh
    live steady --telemetry rapl,exec=./steady.sh
    right steady machine 395.5
}

packages() {
    cp ../rows.jsonl ../short.lua .
    step "a package that counts next to nothing"
    start_tree little --watts-package 0.02 --watts-dram 20
    IPW_POWERCAP_ROOT="$WORK/little" live little
    unknown little cpu stuck
    right little dram 20
    step "two packages over one register count once"
    start_tree twin --watts-package 100 --watts-dram 20
    mkdir twin/intel-rapl:1
    for file in energy_uj max_energy_range_uj enabled; do ln -s "../intel-rapl:0/$file" twin/intel-rapl:1/$file; done
    echo package-1 >twin/intel-rapl:1/name
    IPW_POWERCAP_ROOT="$WORK/twin" live twin
    right twin cpu 100
}

lost() {
    cp ../rows.jsonl ../short.lua .
    step "the energy of a stall that was never counted is in no turn's figure"
    start_tree stall --watts-package 200 --watts-dram 20 --still-while "$WORK/hold" --lose
    sed -e "s|ipw.sleep(query.prompt:find \"1\" and 0.1 or 0.9)|ipw.sleep(0.7)\n  if query.prompt:find \"2\" then assert(proc.run { \"touch\", \"$WORK/hold\" }) ipw.sleep(1.5) assert(proc.run { \"rm\", \"$WORK/hold\" }) end\n  ipw.sleep(0.5)|" ../short.lua >short.lua
    IPW_POWERCAP_ROOT="$WORK/stall" live stall
    assert_json stall/traces.jsonl "[q['energy']['cpu'].get('reason') for q in d] == [None, 'stuck', None]"
    assert_json stall/traces.jsonl "all(p is None or p.get('joules') is None or p['lo'] - 20 <= 200 * t['wall_clock_s'] <= p['hi'] + 20 for q in d for t in q['turns'] for p in [t['energy']['cpu']])"
    assert_json stall/summary.json "d['ledger']['cpu']['total_j'] is None and d['efficiency']['by_domain']['cpu']['queries_with_energy'] == 2"
}

beside half
beside tiny
beside parts
beside packages
beside lost
await_beside

end_test
