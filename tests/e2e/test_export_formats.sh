# Every format meets every kind of run: measured on two GPUs, without sensors, killed, redacted, with failures; and is
# read back by other readers than ours (export_readers.py). Its joules are those of the run's ledger.
. "$(dirname "$0")/lib.sh"
READERS=$IPW_SOURCE_DIR/tests/e2e/export_readers.py

. "$(dirname "$0")/two_gpus.sh"
cp -r measured killed
rm killed/summary.json
printf '{"query_id":"q0' >>killed/traces.jsonl
printf '[12,0,' >>killed/power.jsonl
printf '{"data":' >>killed/events.jsonl
damaged killed
expect_exit 0 agent export measured --format run --redact all -o redacted
mkdir empty && cp measured/manifest.json empty && : >empty/traces.jsonl
damaged empty

# has NAME SUFFIX: the file that the format makes.
for format in jsonl csv sqlite gaia openmetrics perfetto otlp atif swe-bench eee eval-results hf ipw; do
    for run in measured unmeasured killed redacted empty; do
        step "$format of $run"
        case $format in gaia | swe-bench) [ $run != unmeasured ] || continue ;; esac # ids of its own rows are no task ids twice
        expect_exit 0 agent export $run --format $format -o out-$format-$run
        if [ $format = csv ]; then
            for table in turns spans; do
                expect_exit 0 agent export $run --format csv --set table=$table -o out-$format-$run.$table
            done
        fi
        python3 "$READERS" $format out-$format-$run $run >out 2>err || fail "read back"
    done
    step "$format with --redact"
    expect_exit 0 agent export measured --format $format --redact all -o out-$format-clean
    ! grep -aqr "quotes\|script>\|second line" out-$format-clean || fail "a text is left"
done
for format in jsonl sqlite openmetrics perfetto otlp atif eee eval-results hf; do
    step "$format of two runs"
    expect_exit 0 agent export measured unmeasured --format $format -o two-$format
    python3 "$READERS" $format two-$format measured unmeasured >out 2>err || fail "read back"
done

step "lines of the original's own, which know little"
printf '%s\n' '{"query_id":"q0","workload_type":"x","turns":[{"turn_index":0,"gpu_energy_joules":2.5},{"turn_index":1}]}' \
    '{"query_id":"q1","workload_type":"x","query_gpu_energy_joules":3,"total_wall_clock_s":2,"response_text":"a","turns":[]}' >theirs.jsonl
for format in jsonl csv sqlite gaia openmetrics perfetto otlp atif swe-bench eee eval-results hf ipw; do
    expect_exit 0 agent export theirs.jsonl --format $format -o theirs-$format
    [ ! -s err ] || fail "$format: something was said"
done
python3 -c 'import csv; r = list(csv.DictReader(open("theirs-csv", newline=""))); assert [q["gpu_joules"] for q in r] == ["", "3"], r' || fail csv

step "csv: the headlines of runs with their bounds; a bound of an estimate says so"
expect_exit 0 agent export measured killed --format csv --set table=runs
cat >check.py <<'END'
import csv, json
rows = list(csv.DictReader(open("out", newline="")))
summary = json.load(open("measured/summary.json"))
one, total = rows[0], summary["totals"]["bounds"]["gpu_energy_joules"]
assert [r["run"] for r in rows] == ["measured", "killed"], rows
assert [float(one["total_gpu_joules" + k]) for k in ("", "_lo", "_hi", "_u")] == \
    [summary["totals"]["gpu_energy_joules"], total["lo"], total["hi"], total["u"]], one
mean = summary["efficiency"]["bounds"]["mean_joules_per_query"]
assert [float(one["joules_per_query" + k]) for k in ("_lo", "_hi", "_u")] == [mean[k] for k in ("lo", "hi", "u")], one
assert one["basis"] == summary["efficiency"]["basis"] and int(one["queries"]) == summary["totals"]["queries"]
assert rows[1]["total_gpu_joules"] == rows[1]["queries"] == "", rows[1]
END
python3 check.py 2>err || fail "the table of runs"
printf '%s\n' '{"query_id":"q0","workload_type":"x","turns":[],"energy":{"cpu":{"estimate":{"by":"model","joules":9},"lo":4,"hi":26,"reason":"no_sensor"}}}' >guess.jsonl
expect_exit 0 agent export guess.jsonl --format csv
python3 -c 'import csv; r = list(csv.DictReader(open("out", newline="")))[0]; assert [r["cpu_" + k] for k in ("joules", "lo", "hi", "provenance", "estimate_joules")] == ["", "4", "26", "estimated", "9"], r' || fail "the estimate"
expect_exit 0 agent export guess.jsonl --format otlp
grep -q '"ipw.energy.cpu_estimate_joules","value":{"doubleValue":9}' out && grep -q '"ipw.energy.cpu_provenance","value":{"stringValue":"estimated"}' out || fail "the estimate's attributes"

step "csv: a text is no formula, and comes back as it was"
printf '{"question":"q","answer":"x"}\n' >formula.jsonl
cat >says.lua <<'LUA'
return { name = "says", run = function() return "FINAL ANSWER: =1+1, \"x\"" end }
LUA
expect_exit 0 agent run says.lua --dataset formula.jsonl --model demo -q --output formula
expect_exit 0 agent export formula --format csv
python3 -c 'import csv; r = list(csv.DictReader(open("out", newline=""))); assert r[0]["answer"] == chr(39) + "=1+1, \"x\"", r' || fail "the answer"

step "sqlite: by its own shell, where it is installed"
if command -v sqlite3 >/dev/null; then
    sqlite3 out-sqlite-measured "SELECT name, n FROM joules_by_tool" >out
    check_out "calculator|"
    sqlite3 out-sqlite-measured "SELECT abs(l.queries_j - sum(q.gpu_joules)) < 1e-6 FROM ledger l, queries q WHERE l.domain = 'gpu'" >out
    assert_eq "$(cat out)" 1
else
    echo "NOT CHECKED by sqlite3: it is not installed (package sqlite3)"
fi
expect_exit 0 agent export measured --format sqlite --set samples=false -o no-samples.db
python3 -c 'import sqlite3; assert sqlite3.connect("no-samples.db").execute("SELECT count(*) FROM samples").fetchone() == (0,)' || fail "samples"
expect_exit 2 agent export measured --format sqlite
check_err "this format writes a database: --output must name it"

step "openmetrics: by promtool, where it is installed"
if command -v promtool >/dev/null; then
    promtool check metrics <out-openmetrics-measured >out 2>err || fail "promtool"
else
    echo "NOT CHECKED by promtool: it is not installed (package prometheus)"
fi

step "otlp: a collector gets every span, after it had no time at first"
python3 "$READERS" collector port received &
FAKES="$FAKES $!"
await_lines port
export OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:$(cat port)/" OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b" \
    OTEL_SERVICE_NAME=bench OTEL_RESOURCE_ATTRIBUTES="host.name=h1,service.name=other"
expect_exit 0 agent export measured --format otlp --set post=true
[ ! -s out ] || fail "it is written, too"
python3 "$READERS" otlp received measured >out 2>err || fail "received"
grep -q '"key":"service.name","value":{"stringValue":"bench"}' received && grep -q '"stringValue":"h1"' received || fail "the resource"
export OTEL_EXPORTER_OTLP_HEADERS="x-key=wrong"
expect_exit 1 agent export measured --format otlp --set post=true
check_err "/v1/traces: HTTP 400: bad"
export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1
expect_exit 1 agent export measured --format otlp --set post=true
export OTEL_EXPORTER_OTLP_ENDPOINT=127.0.0.1:4318
expect_exit 2 agent export measured --format otlp --set post=true
check_err "OTEL_EXPORTER_OTLP_ENDPOINT: expected the URL of a collector"
unset OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_HEADERS OTEL_SERVICE_NAME OTEL_RESOURCE_ATTRIBUTES

step "otlp: hw.energy never falls, and covers the ledger's total"
expect_exit 0 agent export measured --format otlp --set signal=metrics -o metrics
python3 - <<'PY' >out 2>err || fail "metrics"
import json
points = {}
for line in open("metrics"):
    for m in json.loads(line)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        kind = "sum" if m["name"] == "hw.energy" else "gauge"
        assert m["unit"] == {"sum": "J", "gauge": "W"}[kind] and (kind == "gauge" or m["sum"]["isMonotonic"])
        for p in m[kind]["dataPoints"]:
            key = m["name"], p["attributes"][0]["value"]["stringValue"], p["attributes"][1]["value"]["stringValue"]
            points.setdefault(key, []).append((int(p["timeUnixNano"]), p["asDouble"]))
ledger, ends = json.load(open("measured/summary.json"))["ledger"], {}
for (name, device, domain), values in points.items():
    assert [t for t, _ in values] == sorted(t for t, _ in values)
    if name == "hw.energy":
        assert [v for _, v in values] == sorted(v for _, v in values)
        ends[domain] = ends.get(domain, 0) + values[-1][1]
# The counters are read before the run begins and after it ends, too: they count more than its total.
assert set(ends) == {"cpu", "dram", "gpu"} and all(ledger[d]["total_j"] * 0.999 <= j for d, j in ends.items()), (ends, ledger)
PY

step "atif: the schema version can be chosen"
expect_exit 0 agent export measured --format atif --set version=1.8 -o atif18
grep -q '"schema_version":"ATIF-v1.8"' atif18/00001_*.json || fail "version"

step "swe-bench: the patch of a reply"
printf '{"question":"fence","answer":"x"}\n{"question":"plain","answer":"x"}\n{"question":"none","answer":"x"}\n' >patches.jsonl
cat >patcher.lua <<'LUA'
local diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"
local replies = { fence = "Here:\n```diff\n" .. diff .. "\n```\nDone.", plain = "Text.\n" .. diff, none = "I cannot." }
return { name = "patcher", run = function(query) return replies[query.prompt] end }
LUA
expect_exit 0 agent run patcher.lua --dataset patches.jsonl --model demo -q --output patched
expect_exit 0 agent export patched --format swe-bench -o predictions.jsonl
python3 "$READERS" swe-bench predictions.jsonl patched >out 2>err || fail "read back"
assert_json predictions.jsonl '[r["model_patch"] for r in d] == ["diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"] * 2 + [""]'

step "eval-results: the hub's names of dataset and task"
expect_exit 0 agent export measured --format eval-results --set dataset=gaia-benchmark/GAIA --set task=level1 --set url=https://example.org/r
check_out '    id: "gaia-benchmark/GAIA"'
check_out '    task_id: "level1"'

step "traces.sql names the keys of the files"
python3 - "$IPW_SOURCE_DIR/library/traces.sql" measured/traces.jsonl <<'PY' >out 2>err || fail "keys"
import json, re, sys
sql, lines = open(sys.argv[1]).read(), [json.loads(l) for l in open(sys.argv[2])]
types = {m.group(1): set(re.findall(r"(?:[(,]\s*)(\w+) (?=[A-Za-z])", "(" + m.group(2))) for m in
         re.finditer(r"TYPE (\w+) AS STRUCT\((.*?)\);", sql, re.S)}
columns = set(re.findall(r"(\w+): '", sql))
left_out = re.compile("judge_|total_task_|accuracy_metadata$|tool_call_count$|reference|subject$")
turns = [t for q in lines for t in q["turns"]]
figures = [f for p in lines + turns + [s for t in turns for s in t["spans"]] for f in p["energy"].values()]
for what, keys, known in (("query", {k for q in lines for k in q}, columns), ("turn", {k for t in turns for k in t}, types["ipw_turn"]),
                          ("span", {k for t in turns for s in t["spans"] for k in s}, types["ipw_span"]),
                          ("figure", {k for f in figures for k in f}, types["ipw_figure"])):
    missing = {k for k in keys - known if not left_out.match(k)}
    assert not missing, (what, missing)
PY

end_test
