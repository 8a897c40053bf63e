# Exports read back by programs that define the formats: OTLP by the schema of OpenTelemetry's npm package, Arrow by npm's
# apache-arrow, OpenMetrics and Prometheus text by promtool, the run itself by DuckDB with library/traces.sql. They are fetched once, into a cache folder ($IPW_READERS); a
# reader that cannot be fetched is named, and without any of them the test is skipped.
# Long: it fetches programs of others.
. "$(dirname "$0")/lib.sh"
READERS=$IPW_READERS
mkdir -p "$READERS" || skip "no cache folder can be made: $READERS"

step "the readers"
modules=${IPW_NODE_MODULES-$READERS/node_modules}
have_modules() {
    for module in apache-arrow @opentelemetry/otlp-transformer @duckdb/node-api; do
        [ -d "$modules/$module" ] || return 1
    done
}
if ! have_modules; then
    npm_reached && (cd "$READERS" && timeout 30 npm install --no-audit --no-fund --ignore-scripts --prefix . \
        @opentelemetry/otlp-transformer@0.57.2 apache-arrow@21.2.0 @duckdb/node-api@1.5.6-r.1 </dev/null >"$WORK/npm.log" 2>&1)
fi
node=
have_modules && command -v node >/dev/null && node=yes
[ -n "$node" ] || echo "NOT CHECKED by OpenTelemetry's schema, apache-arrow and DuckDB: npm cannot fetch them"
promtool=$(command -v promtool || echo "$READERS/usr/bin/promtool")
if [ ! -x "$promtool" ] && command -v apt-get >/dev/null; then # without its server and its fonts
    (cd "$READERS" && timeout 100 apt-get download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
        rm -f prometheus_*.deb) </dev/null >"$WORK/apt.log" 2>&1
fi
[ -x "$promtool" ] || echo "NOT CHECKED by promtool: the package prometheus cannot be fetched"
[ -n "$node" ] || [ -x "$promtool" ] || skip "neither npm nor the package prometheus can be reached"

. "$(dirname "$0")/two_gpus.sh"
expect_exit 0 agent export measured --format run --redact all -o redacted

if [ -n "$node" ]; then
    export NODE_PATH=$modules
    for run in measured unmeasured redacted; do
        step "otlp of $run by OpenTelemetry's schema"
        for signal in traces metrics; do
            [ "$signal$run" != metricsunmeasured ] || continue # no sensor, no points
            expect_exit 0 agent export $run --format otlp --set signal=$signal -o $signal-$run
            node "$IPW_SOURCE_DIR/tests/e2e/otlp_schema.cjs" $signal $signal-$run >out 2>err || fail "read back"
            [ "$(cat out)" -gt 20 ] || fail "only $(cat out) were read"
        done
        for format in hf ipw; do
            step "$format of $run by apache-arrow: every value"
            expect_exit 0 agent export $run --format $format -o $format-$run
            data=$(find $format-$run -name '*.arrow')
            node "$IPW_SOURCE_DIR/tests/e2e/arrow_rows.cjs" "$data" >by-npm 2>err || fail "npm: $data"
            python3 "$IPW_SOURCE_DIR/tests/e2e/arrow_stream.py" "$data" >by-rule || fail "$data"
            python3 -c 'import json; a, b = ([json.loads(l) for l in open(f)] for f in ("by-npm", "by-rule")); assert a and a == b' || fail "values of $data"
        done
    done

    step "traces.sql by DuckDB: the same query on every run"
    cat >duck.cjs <<'JS'
const { DuckDBInstance } = require("@duckdb/node-api");
(async () => {
    const db = await (await DuckDBInstance.create(":memory:")).connect();
    await db.run(require("fs").readFileSync(process.argv[2], "utf8"));
    for (const sql of process.argv.slice(3, -1)) await db.run(sql);
    for (const row of (await db.runAndReadAll(process.argv.at(-1))).getRowsJson()) console.log(row.join(" "));
})().catch(e => { console.error(String(e)); process.exit(1); });
JS
    duck() { node duck.cjs "$IPW_SOURCE_DIR/library/traces.sql" "$@" >out 2>err || fail "DuckDB"; }
    for run in measured unmeasured; do
        duck "SELECT coalesce(abs(sum(energy.gpu.joules) - (SELECT sum(energy.gpu.joules) FROM turns('$run/traces.jsonl'))
            - sum(energy_before.gpu.joules)) < 1e-9, true), count(*), sum(total_cost_usd) FROM traces('$run/traces.jsonl')"
        grep -q '^true [48] ' out || fail "$run: the sum"
    done
    duck "SELECT kind, count(*) FROM spans('measured/traces.jsonl') GROUP BY kind ORDER BY kind"
    check_out "tool 6"

    step "Parquet, as --format parquet says: by DuckDB"
    expect_exit 2 agent export measured --format parquet
    check_err "COPY (FROM traces('RUN/traces.jsonl')) TO 'run.parquet'"
    duck "COPY (FROM traces('measured/traces.jsonl')) TO 'run.parquet'" \
        "SELECT count(*), abs(sum(energy.gpu.joules) - (SELECT sum(energy.gpu.joules) FROM traces('measured/traces.jsonl'))) < 1e-9 FROM 'run.parquet'"
    assert_eq "$(cat out)" "4 true"
fi

if [ -x "$promtool" ]; then
    step "openmetrics by promtool"
    expect_exit 0 agent export measured unmeasured --format openmetrics -o both.prom
    "$promtool" check metrics <both.prom >out 2>err || fail "as Prometheus text"
    assert_eq "$(cat out err)" "" "(promtool's remarks)"
    # Its reader of OpenMetrics wants a time at each sample, and keeps the values.
    python3 -c 'import sys; sys.stdout.writelines(l if l[0] == "#" else l[:-1] + " 1800000000.000\n" for l in open("both.prom"))' >timed.prom
    "$promtool" tsdb create-blocks-from openmetrics timed.prom blocks >out 2>err || fail "as OpenMetrics"
    mkdir -p blocks/wal
    "$promtool" tsdb dump blocks >dump 2>err || fail "dump"
    python3 - <<'PY' >out 2>err || fail "the values"
import json, math, re
sums = {}
for line in open("dump"):
    labels, value, _ = re.fullmatch(r"(\{.*\}) (\S+) (\d+)\n", line).groups()
    label = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
    if label["__name__"] == "ipw_run_energy_joules" and label["use"] == "queries":
        sums[label["domain"]] = sums.get(label["domain"], 0) + float(value)
ledger = json.load(open("measured/summary.json"))["ledger"]
assert set(sums) == {"cpu", "dram", "gpu"} and all(math.isclose(sums[d], ledger[d]["queries_j"], rel_tol=1e-9) for d in sums), (sums, ledger)
PY
fi

end_test
