# Choosing tasks: --where, --ids, --sample and --limit, in the manifest, and when a run is resumed.
. "$(dirname "$0")/lib.sh"

cat >rows.jsonl <<'ROWS'
{"id":"a","question":"What is 1 + 1?","answer":"2","level":1}
{"id":"b","question":"What is 2 + 2?","answer":"4","level":2}
{"id":"c","question":"What is 3 + 3?","answer":"6","level":2}
{"id":"d","question":"What is 4 + 4?","answer":"8","level":3}
ROWS
GO="agent run single --dataset rows.jsonl --model demo"

step "an expression over the columns"
expect_exit 0 $GO --where 'level == 2' --output where
assert_json where/traces.jsonl "[t['query_id'] for t in d] == ['b', 'c']"
assert_json where/manifest.json "d['config']['where'] == 'level == 2' and d['config']['max_queries'] == 2"
assert_json where/manifest.json "len(d['config']['dataset_sha256']) == 64 and len(d['config']['selection_sha256']) == 64"

step "a list of ids; the dataset's order counts"
printf 'd\n\n  a \r\n' >ids
expect_exit 0 $GO --ids ids --output ids.run
assert_json ids.run/traces.jsonl "[t['query_id'] for t in d] == ['a', 'd']"
assert_json ids.run/manifest.json "d['config']['ids'] == 'ids' and d['config']['sample'] is None"

step "a sample, drawn the same every time"
expect_exit 0 $GO --sample 2:5 --output one
expect_exit 0 $GO --sample 2:5 --output two
assert_json one/manifest.json "d['config']['sample'] == '2:5' and d['config']['max_queries'] == 2"
assert_eq "$(json one/traces.jsonl "[t['query_id'] for t in d]")" "$(json two/traces.jsonl "[t['query_id'] for t in d]")"

step "resume keeps the choice, and refuses another"
expect_exit 0 agent resume one
expect_exit 3 $GO --sample 2:6 --output one --resume
check_err selection_sha256
printf 'b\n' >ids
expect_exit 3 agent resume ids.run
check_err selection_sha256

step "wrong expressions, columns, ids and numbers"
expect_exit 2 $GO --where 'level = 2'
check_err "--where: at character 7: '=' is not allowed here; use =="
expect_exit 3 $GO --where 'levle == 2'
check_err "did you mean 'level'?"
one_message
expect_exit 3 $GO --where 'level == 9'
check_err "it has 4, and the choice (--where) leaves none"
printf 'a\nz\n' >ids
expect_exit 3 $GO --ids ids
check_err 'ids:2: no record has the id "z"'
expect_exit 3 $GO --ids nowhere
check_err "--ids: nowhere"
expect_exit 2 $GO --sample 0
expect_exit 2 $GO --sample 3:
check_err --sample

end_test
