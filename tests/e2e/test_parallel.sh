# GNU parallel runs the shards of examples/parallel.sh, and the merged run is the whole run.
. "$(dirname "$0")/lib.sh"

parallel --version 2>/dev/null | grep -q '^GNU parallel' || skip "GNU parallel is not installed (Debian: parallel)"
mkdir -p "$HOME/.parallel" && touch "$HOME/.parallel/will-cite"
for i in 1 2 3 4 5 6 7 8 9; do echo "{\"id\":\"t$i\",\"question\":\"What is $i + $i?\",\"answer\":\"42\"}"; done >rows.jsonl
mkdir bin
ln -s "$IPW_AGENT" bin/ipw-agent
export PATH="$WORK/bin:$PATH"
sed "s#agents/react.lua --dataset gaia#single --dataset rows.jsonl --model demo#" \
    "$IPW_SOURCE_DIR/examples/parallel.sh" >line.sh

step "four processes, and the merge"
expect_exit 0 sh line.sh
check_out "runs/big: 9 queries of"
assert_json runs/big/traces.jsonl "sorted(t['query_id'] for t in d) == ['t%d' % i for i in range(1, 10)]"

step "the same line continues: nothing runs twice"
expect_exit 0 sh line.sh
assert_file_lines runs/big/traces.jsonl 9
assert_json runs/big/summary.json "d['run']['earlier_attempts'] == 0"

step "--shard auto/N takes the place from PARALLEL_SEQ"
expect_exit 0 parallel --jobs 3 ipw-agent run single --dataset rows.jsonl --model demo --output auto --shard auto/3 --quiet --seed {} ::: 7 7 7
expect_exit 0 agent merge auto.shards
assert_file_lines auto/traces.jsonl 9

end_test
