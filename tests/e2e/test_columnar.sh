# Datasets in Parquet and Arrow: GAIA in the hub's cache as the hub has it, a folder that save_to_disk left,
# files of a type that is not supported, files that are cut off.
# Sanitizer: damaged files of columns.
. "$(dirname "$0")/lib.sh"

DATA=$IPW_SOURCE_DIR/tests/data/columnar
SNAPSHOT=$HF_HOME/hub/datasets--gaia-benchmark--GAIA/snapshots/abc123
run() { # EXIT DATASET FOLDER [OPTION...]
    code=$1 dataset=$2 folder=$3
    shift 3
    expect_exit "$code" agent run single --model demo --telemetry none -q --dataset "$dataset" -o "$folder" "$@"
}

step "GAIA in the hub's cache, with --dataset gaia and nothing else"
mkdir -p "$SNAPSHOT/2023/validation" "$SNAPSHOT/../../refs" "$SNAPSHOT/../../blobs"
printf abc123 >"$SNAPSHOT/../../refs/main"
for file in "$DATA"/gaia/2023/validation/*; do
    cp "$file" "$SNAPSHOT/../../blobs/"
    ln -s "../../../../blobs/${file##*/}" "$SNAPSHOT/2023/validation/${file##*/}"
done
run 0 gaia gaia
assert_json gaia/events.jsonl '[e["data"]["level"] for e in d if e["event"] == "query_start"] == ["1", "2", "3"]'
assert_json gaia/traces.jsonl '[t["reference_answer"] for t in d] == ["12", "heron", "2, 3"]'
assert_json gaia/manifest.json 'd["config"]["dataset"] == "gaia" and d["config"]["dataset_source"].endswith("metadata.parquet")'
assert_json gaia/events.jsonl '[e["data"]["files"] for e in d if e["event"] == "query_start"] == [[], ["11111111-aaaa-4aaa-8aaa-000000000002.txt"], []]'
expect_exit 0 agent score gaia

step "a file, and a folder that save_to_disk left"
run 0 "$DATA/gaia/2023/validation/metadata.parquet" file
assert_json file/traces.jsonl 'len(d) == 3'
assert_json file/manifest.json 'd["config"]["dataset"] == "metadata"'
run 3 "$DATA/saved" never
check_err "saved/train"
run 3 "$DATA/saved/train" never
check_err "no question; expected one of the columns"
check_err "saw big, id, kind, name, ok, score"

step "check loads them too"
expect_exit 0 agent check "$DATA/gaia/2023/validation/metadata.parquet"
check_out "a good dataset, 'metadata', 3 records"
expect_exit 3 agent check "$DATA/saved/train"
check_out "no question; expected one of the columns"
expect_exit 3 agent check "$DATA/duckdb-interval.parquet"
check_out "the type INTERVAL is not supported"

step "what is not supported is refused by its name, with the column and the file"
run 3 "$DATA/duckdb-interval.parquet" never
check_err "duckdb-interval.parquet: column 'i': the type INTERVAL is not supported"
one_message
run 3 "$DATA/duckdb-brotli.parquet" never
check_err "compression with Brotli is not supported; write the file with zstd or snappy"

step "a file that is cut off"
head -c 3000 "$DATA/duckdb-v1-snappy.parquet" >cut.parquet
run 3 cut.parquet never
check_err "cut.parquet: it does not end with PAR1 (cut off?)"
head -c 3000 "$DATA/js-stream.arrow" >cut.arrow
run 3 cut.arrow never
check_err "cut.arrow: "
check_err "(cut off?)"
[ ! -e never ] || fail "a run was begun"
end_test
