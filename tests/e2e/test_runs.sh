# Which run a word means: a number of `runs`, a name, a part of one, a path, nothing; in every command that takes a run.
. "$(dirname "$0")/lib.sh"

GO="agent run --model demo --quiet --telemetry none"
step "none yet"
expect_exit 0 agent runs
check_out "no run is saved here or in runs/"
expect_exit 2 agent report
check_err "no run is named, and there is none in runs/"
expect_exit 2 agent validate
check_err "no run is named"

step "the newest first, wherever it is"
expect_exit 0 $GO single gaia-sample --limit 1
expect_exit 0 $GO react gaia-sample --limit 2 -o mine
expect_exit 0 $GO tools gaia-sample --limit 3 --stop-at turns=1,query-time=10s
single=$(echo runs/single_*) tools=$(echo runs/tools_*)
expect_exit 0 agent runs --json
assert_json out "[(r['number'], r['run'], r['agent'], r['state']) for r in d] == [(1, '$tools', 'tools', 'at its limit'), (2, 'mine', 'react', 'ended'), (3, '$single', 'single', 'ended')]"
on_terminal 80 agent runs
check_out "$single"
assert_fits out 80

step "a word and the run that it means"
expect_exit 0 agent resume # the last one, which is ended now
while read -r word want; do
    for command in "ledger %s" "validate %s" "replay %s --limit 1" "report %s" "export %s --format jsonl" "score %s --dry-run" \
        "show %s --books" "compare %s mine"; do
        words=$(printf "$command" "$word")
        expect_exit 0 agent $words
    done
    expect_exit 0 agent validate "$word"
    check_out "$want: valid"
done <<WORDS
1 $tools
2 mine
3 $single
single $single
mine mine
./mine ./mine
$tools $tools
WORDS
expect_exit 0 agent validate
check_out "$tools: valid"
expect_exit 3 agent telemetry --read 2
check_err "mine/power.jsonl"
start_serve --replay tools_
stop_serve
for shard in 0 1; do expect_exit 0 $GO single gaia-sample --limit 2 -o runs/cut --shard $shard/2; done
expect_exit 0 agent merge # the only folder of shards
check_out "runs/cut: 2 queries of 2 shards"
rm -r runs/cut
expect_exit 0 agent merge cut
rm -r runs/cut runs/cut.shards

step "words that mean none, or several"
expect_exit 3 agent report nope
check_err "nope: no such run: ipw-agent runs lists them"
expect_exit 3 agent validate mime
check_err "did you mean 'mine'?"
expect_exit 3 agent ledger gaia-sample
check_err "2 names contain it: $tools, $single. Use more of the name."
expect_exit 3 agent report runs/nope
expect_exit 3 agent serve --replay nope
expect_exit 3 agent telemetry --read nope
expect_exit 3 agent merge nope
check_err "nope: no such folder of shards"
expect_exit 2 agent merge
check_err "there is none in runs/"

step "show: a run, a query of it by number, id, beginning or as a screen cuts it, a page, a figure"
id=$(json mine/traces.jsonl 'd[1]["query_id"]')
for query in q0001 1 "$id" "$(echo "$id" | cut -c1-8)" "$(echo "$id" | cut -c1-6)…$(echo "$id" | tail -c 5)"; do
    expect_exit 0 agent show mine "$query"
    check_out "$(echo "$id" | cut -c1-8)"
done
expect_exit 0 agent show q0000 # of the newest
expect_exit 0 agent show mine -o page.html
assert_contains page.html "<html"
expect_exit 0 agent show mine -o parts.svg
assert_contains parts.svg "<svg"
expect_exit 0 agent show mine "$id" -o one.svg
expect_exit 2 agent show mine "$id" -o page.html
expect_exit 0 agent show agents/react.lua # the name that `cat` had
cmp out "$IPW_SOURCE_DIR/agents/react.lua" || fail "another text"

step "the first screen and the short help"
expect_exit 2 agent
[ "$(wc -l <err)" -le 22 ] || fail "the first screen has $(wc -l <err) lines"
expect_exit 0 agent run --help
[ "$(wc -l <out)" -le 45 ] || fail "run --help has $(wc -l <out) lines"
check_out "--help=limits"
expect_exit 0 agent run --help=limits
check_out "--run-cost-limit"
expect_exit 2 agent run --help=nope
check_err "no group has this name"
expect_exit 2 agent run single gaia-sample --stop-at cost
check_err "--stop-at 'cost': expected KEY=VALUE"
expect_exit 0 $GO single gaia-sample --limit 1 -o timed --timeout request=5m,first-token=1m,grace=1s
assert_json timed/manifest.json '"--timeout" in d["command"]["args"]'

end_test
