#!/bin/sh
# ipw-agent telemetry on fake sensors: nothing found, the table, JSON, a recording, the Prometheus
# page (read by promtool where it is installed), one program scraping another, and what a run's files
# say of the sensors.
# Sanitizer: live figures.
. "$(dirname "$0")/lib.sh"

FAKE_POWERCAP=$IPW_BINARY_DIR/tests/fake/fake_powercap
STUB=$IPW_BINARY_DIR/tests/fake/libnvidia-ml-stub.so
[ -x "$FAKE_POWERCAP" ] || fail "no $FAKE_POWERCAP"

# start_powercap DIR: 100 W of a package, 20 W of memory, until the test ends.
start_powercap() {
    mkfifo "$1.ready"
    "$FAKE_POWERCAP" "$1" >"$1.ready" &
    FAKES="$FAKES $!"
    read -r word <"$1.ready"
    assert_eq "$word" ready
}

step "no sensor: says so, says what was looked for and what would help, and exits 0"
expect_exit 0 agent telemetry
check_out "No energy sensor can be read on this machine."
check_out "What would help"
check_out "rapl        not here: no $WORK/no-powercap"
check_out "prometheus=http://"
check_out "Sensors are detected at the start"
expect_exit 0 agent telemetry --json
cp out none.json
assert_json none.json 'd["channels"] == [] and all(not s["found"] and s["text"] for s in d["hardware"]["sensors"])'
assert_json none.json 'all(v is None for v in d["hardware"]["basis"].values())'

step "a word that means nothing is answered with the nearest"
expect_exit 2 agent telemetry --telemetry rappl
check_err "did you mean 'rapl'?"
expect_exit 2 agent telemetry --gpu 7
check_err "--gpu 7"
expect_exit 2 agent telemetry --listen 300.1.1.1:1
expect_exit 2 agent telemetry --listen nonsense

# Root reads everything: then the permission cannot be taken away.
if [ "$(id -u)" -ne 0 ]; then
    step "found and not readable: the remedy"
    mkdir -p "$WORK/denied/intel-rapl:0"
    echo package-0 >"$WORK/denied/intel-rapl:0/name"
    : >"$WORK/denied/intel-rapl:0/energy_uj"
    chmod 0 "$WORK/denied/intel-rapl:0/energy_uj"
    IPW_POWERCAP_ROOT=$WORK/denied expect_exit 0 agent telemetry
    check_words "chmod a+r"
fi

start_powercap "$WORK/powercap"
cat >nvml.txt <<'TXT'
device GPU-aa NVIDIA_H100_80GB 700000
energy 0 counter watts=300
power 0 gauge watts=300
util 0 gpu=50 memory=30
temperature 0 55
device GPU-bb NVIDIA_H100_80GB 700000
energy 1 counter watts=200
power 1 gauge watts=100
memory 0 used=1000000000 total=85899345920
TXT
IPW_POWERCAP_ROOT=$WORK/powercap IPW_NVML_LIBRARY=$STUB IPW_STUB_NVML=$WORK/nvml.txt
export IPW_POWERCAP_ROOT IPW_NVML_LIBRARY IPW_STUB_NVML

step "the table"
expect_exit 0 agent telemetry --duration 2s
check_out "package-0"
check_out "2 GPUs (nvml)"
check_out "1 package (rapl)"
check_out "2x H100 80GB"
match_out() { assert_matches "$WORK/out" "$1"; }
match_out 'gpu1 .* its gauge 100 W: not believed'
match_out 'gpu +unknown +2 GPUs'

step "the table of good channels fits a terminal of 80 columns"
cp nvml.txt both.txt
printf 'device GPU-aa NVIDIA_H100_80GB 700000\nenergy 0 counter watts=300\npower 0 gauge watts=300\nmemory 0 used=1000000000 total=85899345920\n' >nvml.txt
on_terminal 80 agent telemetry --duration 2s
assert_fits out 80
check_out "gpu0/mem_total"
check_out "self-test"
mv both.txt nvml.txt

step "what a source has to remark is seen while it is watched"
expect_exit 0 agent telemetry --telemetry "exec=sh -c 'echo warming up; while :; do echo 7 W; sleep 0.1; done'" \
    --watch --duration 300ms
check_out "1 line is no reading; line 1: 'warming up' is not a reading"

step "JSON: watts by arithmetic, the learned period, counter against gauge"
expect_exit 0 agent telemetry --json --duration 3s
cp out all.json
assert_json all.json '[c["name"] for c in d["channels"] if c["in_sum"]] == ["package-0", "package-0/dram", "gpu0", "gpu1"]'
# On a machine that is busy with other tests the tree is written late and the GPUs are read late: watts
# are told apart from other units and from each other's channels, not from 10 % more.
assert_json all.json 'all(w / 2 < c["watts"] < w * 2 for n, w in (("package-0", 100), ("package-0/dram", 20), ("gpu0", 300), ("gpu1", 200)) for c in d["channels"] if c["name"] == n)'
assert_json all.json 'all(c["period_s"] > 0.05 for c in d["channels"] if c["name"] in ("gpu0", "gpu1"))'
assert_json all.json '[1.4 < c["ratio"] < 2.8 for c in d["channels"] if c["name"] == "gpu1"] == [True]'
assert_json all.json 'd["hardware"]["labels"]["upstream"] == "H10080GB" and d["hardware"]["gpu_count"] == 2 and d["hardware"]["gpu_memory_bytes"] == 85899345920'
assert_json all.json 'd["hardware"]["basis"]["gpu"] == "2 GPUs (nvml)"'

step "one GPU of the two"
expect_exit 0 agent telemetry --json --telemetry nvml --gpu GPU-bb --duration 300ms
cp out one.json
assert_json one.json '{c["name"].split("/")[0] for c in d["channels"]} == {"gpu1"}'

step "a recording has the format of a run's power.jsonl"
expect_exit 0 agent telemetry --record rec.jsonl --duration 1s --interval 20ms
expect_exit 0 agent telemetry --read rec.jsonl
cp out plain.jsonl
assert_json plain.jsonl 'd[0]["basis"]["cpu"] == "1 package (rapl)" and [s["name"] for s in d[0]["sources"]] == ["rapl", "nvml"]'
assert_json plain.jsonl 'len([r for r in d[1:] if r[1] == 0]) >= 10'
assert_json plain.jsonl 'all(len(r) == 2 + len(d[0]["sources"][r[1]]["channels"]) for r in d[1:])'
assert_json plain.jsonl 'all(a[0] < b[0] for k in (0, 1) for s in [[r for r in d[1:] if r[1] == k]] for a, b in zip(s, s[1:]))'
cmp rec.jsonl plain.jsonl || fail "rows are not read as they are"
# Two parts, as of a run that was resumed; then a damaged line, which is named and passed over.
cat rec.jsonl rec.jsonl >twice.jsonl
expect_exit 0 agent telemetry --read twice.jsonl
assert_eq "$(grep -c '^{' out) $(wc -l <out)" "2 $((2 * $(wc -l <rec.jsonl)))"
head -1 rec.jsonl | sed 's/"format":1/"format":2/' | cat rec.jsonl - >other.jsonl
expect_exit 3 agent telemetry --read other.jsonl
check_err "rows of format 2 (packed): this program reads format 1"
awk 'NR == 5 { print "[1,2" } { print }' rec.jsonl >hurt.jsonl
expect_exit 3 agent telemetry --read hurt.jsonl
check_err "hurt.jsonl:5: not a row"
expect_exit 3 agent telemetry --read "$WORK"
check_err "power.jsonl"
expect_exit 3 agent telemetry --read nothing-here
expect_exit 1 agent telemetry --record rec.jsonl --duration 100ms
check_err rec.jsonl

step "the Prometheus page"
mkfifo listen.out
echo 'while :; do echo 7 W; sleep 0.2; done' >'odd"na\me'
"$IPW_AGENT" telemetry --telemetry auto --telemetry "exec=sh 'odd\"na\\me'" \
    --listen 127.0.0.1:0 --duration 60s >listen.out 2>listen.err &
LISTENER=$!
FAKES="$FAKES $LISTENER"
exec 3<listen.out
read -r word URL <&3
assert_eq "$word" listening
case $URL in http://127.0.0.1:*/metrics) ;; *) fail "not on loopback: $URL" ;; esac
fetch() { python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())' "$1"; }
fetch "$URL" >page.txt || fail "cannot fetch $URL"
assert_contains page.txt '# TYPE ipw_energy_joules_total counter'
assert_contains page.txt 'ipw_energy_joules_total{channel="package-0",device="intel-rapl:0",domain="cpu",scope="package",source="rapl"} '
assert_contains page.txt '# TYPE ipw_power_watts gauge'
assert_contains page.txt 'ipw_sensor_info{channel="gpu1"'
fetch "${URL%/metrics}/nothing" >/dev/null 2>&1 && fail "an unknown path is served"
if command -v promtool >/dev/null; then
    promtool check metrics <page.txt >promtool.out 2>&1 || fail "promtool: $(cat promtool.out)"
    assert_eq "$(cat promtool.out)" "" "(promtool's remarks)"
else
    echo "NOT CHECKED by promtool: it is not installed (package prometheus)"
fi
# The same and more by the format's own rules (Prometheus text format 0.0.4, naming practice).
cat >page.py <<'PY'
import re, sys
text = open("page.txt", encoding="utf-8").read()
assert text.endswith("\n") and "\r" not in text
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
families, current, seen, values = {}, None, set(), {}
for number, line in enumerate(text.splitlines(), 1):
    def need(ok, why): ok or sys.exit("line %d: %s: %s" % (number, why, line))
    if line.startswith("# "):
        word, name, rest = line[2:].split(" ", 2)
        need(word in ("HELP", "TYPE") and rest, "a comment that says nothing")
        if word == "HELP":
            need(name not in families, "a family twice, or its samples apart")
            families[name], current = {"HELP"}, name
        else:
            need(name == current and families[name] == {"HELP"}, "TYPE after HELP, before samples")
            need(rest in ("counter", "gauge"), "type")
            need((rest == "counter") == name.endswith("_total"), "only counters end in _total")
            need(re.search("_(joules_total|watts|ratio|bytes|celsius|info)$", name), "base unit")
            families[name].add("TYPE")
        continue
    m = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(%s(?:,%s)*)\} (\S+)" % (LABEL, LABEL), line)
    need(m, "no sample")
    need(m[1] == current and families[current] == {"HELP", "TYPE"}, "a sample outside its family")
    labels = [(k, v) for k, v in re.findall(LABEL, m[2])]
    need(len({k for k, _ in labels}) == len(labels), "a label twice")
    need((m[1], tuple(sorted(labels))) not in seen, "a series twice")
    seen.add((m[1], tuple(sorted(labels))))
    value = float(m[m.lastindex])
    need(value == value and abs(value) < 1e18 and value >= 0, "value")
    unescaped = {k: re.sub(r"\\(.)", lambda e: {"n": "\n"}.get(e[1], e[1]), v) for k, v in labels}
    values[m[1], unescaped["channel"]] = value
need(all(v == {"HELP", "TYPE"} for v in families.values()), "a family without a type")
need(("ipw_power_watts", "exec:sh 'odd\"na\\me'") in values, "the odd name does not come back")
need(values["ipw_utilization_ratio", "gpu0/util"] == 0.5, "utilisation")
need(values["ipw_temperature_celsius", "gpu0/temp"] == 55, "temperature")
need(values["ipw_memory_bytes", "gpu0/mem_total"] == 85899345920, "memory")
PY
python3 page.py || fail "the page is not as the format wants it"

step "a second ipw-agent scrapes the first: the same watts, and a run books them"
IPW_POWERCAP_ROOT=$WORK/no-powercap expect_exit 0 agent telemetry --json --telemetry prometheus="$URL" --duration 3s
cp out scraped.json
assert_json scraped.json 'd["hardware"]["basis"]["cpu"] == "1 package (prometheus)" and d["hardware"]["basis"]["gpu"] == "2 GPUs (prometheus)"'
assert_json scraped.json '[round(c["watts"] / 100) for c in d["channels"] if c["in_sum"] and c["domain"] == "cpu"] == [1]'
# Their names begin with the host's: what tells them apart is seen on a narrow terminal too.
IPW_POWERCAP_ROOT=$WORK/no-powercap on_terminal 80 agent telemetry --telemetry prometheus="$URL" --duration 300ms
assert_matches out 'prometheus +….*/gpu0 +device'
assert_matches out 'prometheus +….*/gpu1 +device'
expect_exit 2 agent telemetry --telemetry prometheus=
printf '{"id":"q%s","prompt":"What is 6 times 7?","answer":"42"}\n' 1 2 3 >rows.jsonl
start_fake --bench 0 --delay-ms 300
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --telemetry prometheus="$URL" --output scraped
assert_json scraped/summary.json 'd["ledger"]["cpu"]["total_j"] > 0 and d["ledger"]["gpu"]["total_j"] > 0'
kill "$LISTENER" && wait "$LISTENER" 2>/dev/null
exec 3<&-

step "a run: basis, self-test, labels, own joules; sensors by name must be there"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output run
assert_json run/manifest.json 'd["hardware"]["basis"]["cpu"] == "1 package (rapl)"'
assert_json run/manifest.json '{t["channel"]: t["state"] for t in d["hardware"]["self_test"]}["package-0"] == "moves"'
assert_json run/manifest.json 'd["hardware"]["gpu_count"] == d["hardware"]["gpus_read"] == 2'
assert_json run/manifest.json 'd["hardware"]["labels"]["hw"] == "2x H100 80GB" and d["config"]["telemetry"] == "auto"'
assert_json run/summary.json 'd["own_overhead"]["estimated_joules"] > 0'
# One sample at each end of an inference, besides those of the schedule.
assert_json run/power.jsonl 'd[0]["basis"]["gpu"] == "2 GPUs (nvml)"'
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output byname --telemetry rapl
assert_json byname/power.jsonl '[s["name"] for s in d[0]["sources"]] == ["rapl"]'
IPW_POWERCAP_ROOT=$WORK/no-powercap expect_exit 1 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output absent --telemetry rapl
check_err "--telemetry rapl: no $WORK/no-powercap"
[ ! -e absent ] || fail "a run that cannot be measured left a folder"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output off --telemetry none
assert_json off/summary.json 'd["ledger"]["cpu"]["reason"] == "switched_off"'

step "marks: samples lie close to the edges of the inferences"
assert_json run/events.jsonl 'len([e for e in d if e["event"].startswith("lm_inference")]) >= 6'
expect_exit 0 agent telemetry --read run
cp out run.plain
python3 - <<'PY' || fail "no reading near an inference's edge"
import json
rows = [json.loads(l) for l in open("run.plain")][1:]
times = [r[0] for r in rows if r[1] == 0]
edges = [e["t_ns"] for e in map(json.loads, open("run/events.jsonl")) if e["event"].startswith("lm_inference")]
far = [min(abs(t - e) for t in times) / 1e6 for e in edges]
near = sum(d < 5 for d in far)  # the schedule alone: 5 ms of 25 either way, about a fifth
raise SystemExit(0 if near >= 0.8 * len(far) else print(far) or 1)
PY

step "another program is at work: a warning, and with --require-quiet no run"
sh -c 'while :; do :; done' &
busy=$!
FAKES="$FAKES $busy"
expect_exit 1 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output loud --require-quiet
check_err "--require-quiet: other programs use"
[ ! -e loud ] || fail "a refused run left a folder"
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output loud
check_err "the machine is not quiet: other programs use"
assert_json loud/manifest.json '"other programs use" in d["not_quiet"]'
kill "$busy" && wait "$busy" 2>/dev/null

step "list sensors"
expect_exit 0 agent list sensors
check_out "rapl                 2 channels"
check_out "prometheus="

end_test
