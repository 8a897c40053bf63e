# Every format exports a run that is still going on: what is finished, with its joules. It is read back by other
# readers than ours (export_readers.py), and the run is not disturbed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gate.sh"
READERS=$IPW_SOURCE_DIR/tests/e2e/export_readers.py

step "a run, whose last query waits"
start_fake --bench 2 --delay-ms 20
start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"
"$IPW_AGENT" run gated.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --web-allow "$GATE" \
    --sample-interval 20ms -q -o going >ran 2>said &
RUN=$!
tries=0
until [ "$(cat going/traces.jsonl 2>/dev/null | wc -l)" -eq 4 ]; do
    tries=$((tries + 1))
    [ $tries -lt 1500 ] || fail "no 4 queries are finished: $(cat said)"
    sleep 0.02
done

for format in jsonl csv sqlite gaia openmetrics perfetto otlp atif swe-bench eee eval-results hf ipw; do
    step "$format"
    expect_exit 0 agent export going --format $format -o out-$format
    if [ $format = csv ]; then
        for table in turns spans; do
            expect_exit 0 agent export going --format csv --set table=$table -o out-$format.$table
        done
    fi
    python3 "$READERS" $format out-$format going >out 2>err || fail "read back"
done

step "validate checks what is there, and computes nothing again"
expect_exit 0 agent validate going
check_out "going: valid: 4 queries"
check_out "the run is going on"
! grep -q reproduced out || fail "the joules of a run that goes on were computed again"
cp -r going held
exec 9<held/lock
flock 9
expect_exit 0 agent validate held
check_out "the run is going on"
sed -i '2s/"outcome":"[a-z_]*",//' held/traces.jsonl
expect_exit 1 agent validate held
check_err "held/traces.jsonl:2: outcome: missing"
exec 9<&-
rm -r held
kill -0 $RUN || fail "the run is over"
open_gate
wait $RUN || fail "the run: $(cat said)"
assert_json going/traces.jsonl "len(d) == 5"

step "parquet: who writes it"
expect_exit 2 agent export going --format parquet
check_err "no format 'parquet'; DuckDB writes it"
check_err "library/traces.sql"

end_test
