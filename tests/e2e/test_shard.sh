# run --shard: the shards of a run are its selection, each task in one, and each is an ordinary run.
. "$(dirname "$0")/lib.sh"

for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"id\":\"t$i\",\"question\":\"What is $i + $i?\",\"answer\":\"$((i + i))\",\"level\":$((i % 2))}"
done >rows.jsonl
GO="agent run single --dataset rows.jsonl --model demo -q"
ids() { json "$1/traces.jsonl" "' '.join(t['query_id'] + '.' + str(t['epoch']) for t in d)" | tr ' ' '\n'; }

step "three shards are the uncut run, after --where, --sample and --limit; epochs stay together"
CHOICE="--where level==1 --sample 5:3 --limit 2-5 --epochs 2"
expect_exit 0 $GO $CHOICE --output whole
for i in 0 1 2; do expect_exit 0 $GO $CHOICE --output cut --shard $i/3; done
ids whole | sort >uncut
for run in cut.shards/*; do ids "$run"; done | sort >united
cmp -s uncut united || fail "the shards hold $(cat united), the uncut run $(cat uncut)"
for run in cut.shards/*; do
    assert_json "$run/manifest.json" "d['config']['shard']['selected'] == 4 and d['config']['shard']['count'] == 3"
    assert_eq "$(json "$run/manifest.json" "d['config']['shard']['selection_sha256']")" \
        "$(json whole/manifest.json "d['config']['selection_sha256']")"
    assert_json "$run/manifest.json" "len(d['segments'][0]['host']['boot_id']) == 36 and d['segments'][0]['host']['name'] != ''"
    assert_json "$run/traces.jsonl" "len({t['query_id'] for t in d}) * 2 == len(d)"
    assert_json "$run/events.jsonl" "all(1 <= e['data']['place'] <= 4 for e in d if e['event'] == 'query_start')"
done
assert_json whole/manifest.json "d['config']['shard'] is None"
assert_json whole/events.jsonl "not any('place' in e['data'] for e in d if e['event'] == 'query_start')"

step "a shard is an ordinary run: replay, ledger, resume"
one=$(ls -d cut.shards/* | head -1)
expect_exit 0 agent replay "$one" --mode hermetic
expect_exit 0 agent ledger "$one" --check
expect_exit 0 agent resume "$one"
expect_exit 2 agent resume "$one" --shard 1/2 --force
check_err "is the folder of another shard than --shard 1/2"

step "a task's shard depends on its id alone"
expect_exit 0 $GO --output all --shard 1/3
for id in $(ids cut.shards/1-of-3); do ids all.shards/1-of-3 | grep -qx "${id%.*}.0" || fail "$id moved"; done

step "auto takes the place from the engine, and the saved command has it"
(
    export SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=2
    expect_exit 0 agent run single --dataset rows.jsonl --model demo --output auto --shard auto
    check_err "shard 1 of 3, counted from 0: Slurm's array (SLURM_ARRAY_TASK_ID=1)"
) || exit 1
assert_eq "$(ids auto.shards/1-of-3)" "$(ids all.shards/1-of-3)"
assert_json auto.shards/1-of-3/manifest.json "d['config']['shard']['taken'].startswith('Slurm')"
assert_json auto.shards/1-of-3/manifest.json "'1/3' in d['command']['args'] and 'auto' not in d['command']['args']"
expect_exit 0 agent resume auto.shards/1-of-3
(
    export JOB_COMPLETION_INDEX=2
    expect_exit 0 $GO --output auto --shard auto/3
) || exit 1
expect_exit 0 $GO --output all --shard 2/3
assert_eq "$(ids auto.shards/2-of-3)" "$(ids all.shards/2-of-3)"
expect_exit 2 $GO --output auto --shard auto
check_err "none of these variables is set: SLURM_ARRAY_TASK_ID"
one_message

step "a shard without a task is done at once, and leaves no folder"
for i in 0 1; do
    expect_exit 0 agent run single --dataset rows.jsonl --limit 1 --model demo --output few --shard $i/2 --resume
    [ -d few.shards/$i-of-2 ] || check_err "no task belongs to this shard"
done
assert_eq "$(ls few.shards)" "$(basename few.shards/*)" "(one folder)"

step "wrong usage"
expect_exit 2 $GO --shard 0/2
check_err "name the run with --output"
expect_exit 2 $GO --output x --shard 2/2
check_err "counted from 0"
expect_exit 3 $GO --where 'level == 9' --output x --shard 0/2
check_err "leaves none"

step "folders of two machines: copied together, then merged"
expect_exit 2 agent merge a.shards b.shards
check_err "copy the shards of b.shards into a.shards"

end_test
