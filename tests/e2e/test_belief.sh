# Sensors that never move, that stop, or that say 0 W: none of them is a measurement.  Ten cases live,
# against stand-ins for hardware (fake_powercap, an NVML stub, a power_supply folder), and what doctor,
# list, telemetry, the limits and validate say of them.
. "$(dirname "$0")/lib.sh"

STUB="$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so"
printf '{"question":"Question %d?","answer":"42"}\n' 1 2 3 4 >rows.jsonl

# A call, then as long a tool: HOLD names a file that the second query of a run puts there (a sensor
# stands still while there is one), for as long as STILL says.
cat >steps.lua <<'LUA'
local ipw, llm, proc = require "ipw", require "ipw.llm", require "ipw.proc"
return {
  name = "steps",
  run = function(query)
    local reply = llm.chat { messages = { llm.user(query.prompt) } }
    local hold = "HOLD"
    if hold ~= "none" and query.prompt:find "2" then assert(proc.run { "touch", hold }) end
    ipw.sleep(query.prompt:find "2" and STILL or 0.4)
    if hold ~= "none" and query.prompt:find "2" and KEEP == 0 then assert(proc.run { "rm", "-f", hold }) end
    ipw.sleep(0.4)
    return reply.text
  end,
}
LUA
# steps NAME HOLD STILL KEEP: such an agent in NAME.lua
steps() { sed -e "s|HOLD|$2|" -e "s|STILL|$3|" -e "s|KEEP|$4|" steps.lua >"$1.lua"; }
steps plain none 0.4 0
start_fake --bench 0 --delay-ms 300

# live NAME AGENT ARGS...: a run of it
live() {
    name=$1 agent=$2
    shift 2
    expect_exit 0 agent run "$agent.lua" --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output "$name" "$@"
}
# unknown NAME DOMAIN REASON: no query of the run has a figure of the domain
unknown() {
    assert_json "$1/traces.jsonl" "all(q['energy']['$2']['joules'] is None and q['energy']['$2']['reason'] == '$3' for q in d)"
    assert_json "$1/summary.json" "d['totals']['$2_energy_joules'] is None and d['ledger']['$2']['total_j'] is None"
    assert_json "$1/summary.json" "d['ledger']['$2']['balanced'] is None and d['efficiency']['by_domain']['$2'] is None"
}
# board LINE...: what the NVML stub is
board() {
    printf 'device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000\n' >gpu.txt
    for line in "$@"; do printf '%s\n' "$line" >>gpu.txt; done
    export IPW_NVML_LIBRARY="$STUB" IPW_STUB_NVML="$WORK/gpu.txt"
}
no_board() { export IPW_NVML_LIBRARY="$WORK/no-nvml.so"; }

# Most of it waits for sensors to be doubted, so the cases run at the same time.

packages() {
    cp ../rows.jsonl ../steps.lua ../plain.lua .
    step "1: a package that never moves"
    start_tree dead --watts-package 0 --watts-dram 0
    export IPW_POWERCAP_ROOT="$WORK/dead"
    live frozencap plain --limit 2
    check_err "package-0 does not move: not believed"
    unknown frozencap cpu stuck
    unknown frozencap dram stuck
    assert_json frozencap/summary.json "'package-0 does not move: not believed' in d['note']"
    assert_json frozencap/summary.json "d['efficiency']['joules_per_correct_answer'] is None and d['efficiency']['basis'] is None"
    expect_exit 0 agent ledger frozencap --check

    step "every command says the same of it"
    expect_exit 0 agent telemetry
    check_out "does not move: not believed"
    expect_exit 0 agent telemetry --json
    assert_json out "all(c['believed'] is False and c['joules'] is None and c['watts'] is None for c in d['channels'])"
    expect_exit 0 agent list sensors
    check_out "package-0 does not move: not believed"
    expect_exit 0 agent doctor --base-url "$BASE_URL"
    check_out "does not move: not believed"
    expect_exit 2 agent run plain.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output refused --energy-limit 50J
    check_err "cannot use --energy-limit: package-0 does not move: not believed"
}

platform() {
    cp ../rows.jsonl ../steps.lua ../plain.lua .
    step "2: a platform counter (psys) that never moves; the package counts on"
    start_tree psys --watts-package 80 --watts-dram 5 --watts-psys 0
    export IPW_POWERCAP_ROOT="$WORK/psys"
    live frozenpsys plain --limit 2
    check_err "psys does not move: not believed"
    unknown frozenpsys machine stuck
    assert_json frozenpsys/summary.json "d['totals']['cpu_energy_joules'] > 0 and d['ledger']['cpu']['balanced'] is True"
    assert_json frozenpsys/summary.json "d['efficiency']['basis'] == 'cpu+dram'"
    truth books frozenpsys

    step "validate refuses a figure over readings that never change"
    cp -r frozenpsys forged
    damaged forged
    expect_exit 0 agent telemetry --read frozenpsys
    python3 - <<'PY'
import json
lines = open("out").read().splitlines()
names = [c["name"] for c in json.loads(lines[0])["sources"][0]["channels"]]
at, first = 2 + names.index("package-0"), json.loads(lines[1])
rows = [json.loads(l) for l in lines[1:]]
for row in rows:
    row[at] = first[at]
open("forged/power.jsonl", "w").write("\n".join(lines[:1] + [json.dumps(r) for r in rows]) + "\n")
PY
    expect_exit 1 agent validate forged
    check_err "but by power.jsonl 'package-0' does not move: not believed"

    step "3: one package of two is dead: the other is a part, not the whole"
    start_tree two --watts-package 80 --watts-dram 5 --watts-second 0
    export IPW_POWERCAP_ROOT="$WORK/two"
    live twopkg plain --limit 2
    check_err "package-1 does not move: not believed"
    unknown twopkg cpu stuck
    assert_json twopkg/summary.json "d['ledger']['cpu']['partial_j'] > 0 and d['ledger']['cpu']['devices']['package-0']['total_j'] == d['ledger']['cpu']['partial_j'] and d['ledger']['cpu']['devices']['package-1']['total_j'] is None"
    export IPW_POWERCAP_ROOT="$WORK/no-powercap"
}

boards() {
    cp ../rows.jsonl ../steps.lua ../plain.lua .
    step "4: an NVML counter that never moves, with nothing beside it"
    board "energy 0 counter watts=0"
    live frozennvml plain --limit 2
    unknown frozennvml gpu stuck

    step "5: the same beside a gauge of 207 W, which stands in from the start"
    board "energy 0 counter watts=0" "power 0 gauge watts=207"
    live frozengauge plain --limit 2
    check_err "1 energy counter does not move: power is integrated instead"
    assert_json frozengauge/traces.jsonl "all(abs(q['energy']['gpu']['joules'] - 207 * q['total_wall_clock_s']) < 0.02 * 207 * q['total_wall_clock_s'] for q in d)"
    assert_json frozengauge/events.jsonl "[(e['data']['channel'], e['data']['stands_in']) for e in d if e.get('name') == 'sensor_stuck'] == [('gpu0', 'gpu0/power')]"
    assert_json frozengauge/manifest.json "'power integrated' in d['hardware']['basis']['gpu']"

    step "9: a gauge that says 0 W of a board that is awake"
    board "power 0 gauge watts=0"
    live zerogauge plain --limit 2
    unknown zerogauge gpu no_samples
    no_board

    step "10: a battery that discharges at 0 W"
    mkdir -p sys/class/power_supply/BAT0
    printf 'Battery\n' >sys/class/power_supply/BAT0/type
    printf 'Discharging\n' >sys/class/power_supply/BAT0/status
    printf '0\n' >sys/class/power_supply/BAT0/power_now
    IPW_SYSFS_ROOT="$WORK/sys" live battery0 plain --limit 2
    unknown battery0 machine no_samples

    step "a part that cannot be read: its domain has its own reason, not another sensor's"
    start_tree part --watts-package 80 --watts-dram 5
    rm part/intel-rapl:0/energy_uj
    IPW_POWERCAP_ROOT="$WORK/part" live dramonly plain --limit 1
    unknown dramonly cpu no_sensor
    assert_json dramonly/summary.json "'/intel-rapl:0/energy_uj: No such file or directory' in d['energy_note'] and d['totals']['dram_energy_joules'] > 0"
}

stops() {
    cp ../rows.jsonl ../steps.lua ../plain.lua .
    step "6: a counter that stops for good in mid-run: null from there on, and it is noted"
    steps late "$WORK/late" 5 1
    board "energy 0 counter watts=300" "still 0 while=$WORK/late"
    live frozenlate late
    match_err "gpu0 stopped [0-9.]+ s after the start: not believed"
    assert_json frozenlate/traces.jsonl "d[0]['energy']['gpu']['joules'] > 0 and all(q['energy']['gpu']['joules'] is None and q['energy']['gpu']['reason'] == 'stuck' for q in d[1:])"
    assert_json frozenlate/summary.json "d['ledger']['gpu']['total_j'] is None and d['totals']['gpu_energy_joules'] is None"
    assert_json frozenlate/summary.json "'gpu0 stopped' in d['note']"
    assert_json frozenlate/events.jsonl "[(e['data']['channel'], e['data']['to_ns'], e['data']['stands_in']) for e in d if e.get('name') == 'sensor_stuck'] == [('gpu0', None, None)]"
    expect_exit 0 agent ledger frozenlate --check

    step "... beside a gauge, which stands in from there on"
    rm -f late
    board "energy 0 counter watts=300" "power 0 gauge watts=300" "still 0 while=$WORK/late"
    live handed late
    check_err "gpu0/power stands in"
    assert_json handed/traces.jsonl "d[0]['energy']['gpu']['joules'] > 0 and all(abs(q['energy']['gpu']['joules'] - 300 * q['total_wall_clock_s']) < 0.1 * 300 * q['total_wall_clock_s'] for q in d[2:])"
    assert_json handed/events.jsonl "[e['data']['stands_in'] for e in d if e.get('name') == 'sensor_stuck'] == [None, 'gpu0/power']"
    expect_exit 0 agent ledger handed --check
}

blind() {
    cp ../rows.jsonl ../steps.lua ../plain.lua .
    step "... and under a limit of energy, which can no longer be kept"
    board "energy 0 counter watts=300" "still 0 while=$WORK/late"
    steps longer "$WORK/late" 600 1
    expect_exit 0 agent run longer.lua --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output blind --energy-limit 100kJ --limit 2
    assert_json blind/traces.jsonl "d[1]['outcome'] == 'energy_limit'"
    assert_json blind/traces.jsonl "'--energy-limit 100000 J can no longer be kept: the energy is not known' in d[1]['error']"
}

stall() {
    cp ../rows.jsonl ../steps.lua ../plain.lua .
    step "7: an NVML counter that stands still for 3 s: no part of it is 0 J, and bounds hold"
    steps stall "$WORK/stalled" 3 0
    board "energy 0 counter watts=300" "still 0 while=$WORK/stalled"
    live stall stall
    assert_json stall/traces.jsonl "all(q['energy']['gpu']['lo'] - 0.1 <= 300 * q['total_wall_clock_s'] <= q['energy']['gpu']['hi'] + 0.1 for q in d)"
    assert_json stall/traces.jsonl "all(p is None or p['joules'] is None or p['joules'] > 0 for q in d for t in q['turns'] for p in [t['energy']['gpu']])"
    assert_json stall/events.jsonl "[e['data']['to_ns'] is None for e in d if e.get('name') == 'sensor_stuck'] == [True, False]"
    assert_json stall/events.jsonl "[e['data']['to_ns'] - e['data']['from_ns'] > 2.5e9 for e in d if e.get('name') == 'sensor_stuck' and e['data']['to_ns']] == [True]"
    expect_exit 0 agent ledger stall --check
    no_board
}

stall_package() {
    cp ../rows.jsonl ../steps.lua ../plain.lua .
    step "8: a package counter that stands still for 3 s"
    steps stallcap "$WORK/stalledcap" 3 0
    start_tree stops --watts-package 80 --watts-dram 5 --still-while "$WORK/stalledcap"
    export IPW_POWERCAP_ROOT="$WORK/stops"
    live stallcap stallcap
    assert_json stallcap/traces.jsonl "all(q['energy']['cpu']['joules'] is None or q['energy']['cpu']['joules'] > 0 for q in d)"
    assert_json stallcap/traces.jsonl "all(p is None or p['joules'] is None or p['joules'] > 0 for q in d for t in q['turns'] for p in [t['energy']['cpu']])"
    assert_json stallcap/events.jsonl "{e['data']['channel'] for e in d if e.get('name') == 'sensor_stuck'} == {'package-0'}"
    truth books stallcap
    expect_exit 0 agent ledger stallcap --check
    export IPW_POWERCAP_ROOT="$WORK/no-powercap"
}

beside packages
beside platform
beside boards
beside stops
beside blind
beside stall
beside stall_package
await_beside

end_test
