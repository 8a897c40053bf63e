# submit slurm: the script, handed in to a fake sbatch that runs the array at once; examples/slurm.sh.
. "$(dirname "$0")/lib.sh"

for i in 1 2 3 4 5 6 7 8; do echo "{\"id\":\"t$i\",\"question\":\"What is $i + $i?\",\"answer\":\"42\"}"; done >"my rows.jsonl"

# The fake: an array's jobs one after the other, shard 1 twice, as after a requeue; a merge if they
# all succeeded.  Its arguments are in sbatch.log.
mkdir bin
cat >bin/sbatch <<'SH'
#!/bin/sh
printf '%s\n' "$*" >>sbatch.log
for word; do case $word in --wrap=*) sh -c "${word#--wrap=}" >merge.out 2>&1; echo 8; exit ;; esac done
for word; do file=$word; done
last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\).*/\1/p' "$file")
for i in $(seq 0 "$last") 1; do
    SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID=$i sh "$file" >>array.out 2>&1 || exit 1
done
echo 7
SH
chmod +x bin/sbatch
export PATH="$WORK/bin:$PATH"

step "the script is written, and says how to hand it in"
expect_exit 0 agent submit slurm --shards 3 --at-once 2 --sbatch --gres=gpu:1 --sbatch --time=1:00:00 -- \
    run single --dataset "my rows.jsonl" --model demo --where "id != 'x y'" --output runs/big -q
check_out "wrote big.slurm; to hand it in: sh big.slurm"
sh -n big.slurm || fail "it is no shell script"
for line in "#SBATCH --array=0-2%2" "#SBATCH --gres=gpu:1" "#SBATCH --time=1:00:00" "#SBATCH --requeue" "#SBATCH --chdir=$WORK"; do
    assert_contains big.slurm "$line"
done
[ ! -e sbatch.log ] || fail "it was handed in"

expect_exit 0 agent submit slurm --shards 2 --output "a b.slurm" -- run single --dataset "my rows.jsonl" --output runs/ab
check_out "to hand it in: sh 'a b.slurm'"

step "handed in, it runs the shards, continues one, and merges"
expect_exit 0 sh big.slurm
check_out "array job 7, merge job 8"
assert_contains sbatch.log "--dependency=afterok:7 --kill-on-invalid-dep=yes"
assert_contains merge.out "runs/big: 8 queries of"
assert_json runs/big/traces.jsonl "sorted(t['query_id'] for t in d) == ['t%d' % i for i in range(1, 9)]"
assert_json runs/big/manifest.json "d['config']['where'] == \"id != 'x y'\""

step "--submit hands it in at once"
expect_exit 0 agent submit slurm --shards 2 --submit --output now.sh -- run single --dataset "my rows.jsonl" --model demo --output now
check_out "array job 7, merge job 8"
assert_file_lines now/traces.jsonl 8

step "an edited script is not overwritten; mistakes are found before the jobs are"
expect_exit 1 agent submit slurm --shards 3 -- run single --dataset "my rows.jsonl" --output runs/big
check_err "big.slurm already exists; it was not changed"
expect_exit 2 agent submit slurm --shards 3 -- run single --dataset "my rows.jsonl"
check_err "name the run with --output"
expect_exit 2 agent submit slurm --shards 3 -- run single --dateset x --output y
offers --dataset
expect_exit 2 agent submit slurm --shards 3 -- run single --dataset x --output y --shard 0/2
check_err "leave --shard out"
expect_exit 2 agent submit slurm -- run single --dataset x --output y
check_err "--shards N is missing"
expect_exit 2 agent submit pbs --shards 3 -- run single --dataset x --output y
check_err "slurm, not 'pbs'"
expect_exit 2 agent submit slurm --shards 3 -- replay x
check_err "after -- comes \`run\`"
expect_exit 2 agent submit slurm --shards 3 -- run single --dataset x --output y --header "X-Key: abc"
check_err "the script would show the secret of --header"
[ ! -e y.slurm ] || fail "y.slurm was written"

step "names are words, never shell"
mkdir 'a $(touch X) `touch X` "b'
hostile='h$(touch X)`touch X`"; touch X; \ 5%'
(
    cd 'a $(touch X) `touch X` "b' || exit
    expect_exit 0 agent submit slurm --shards 2 --output in.sh -- run single --dataset "../my rows.jsonl" --model demo \
        --output "$hostile"
    expect_exit 0 sh in.sh
    check_out "array job 7, merge job 8"
    [ ! -e X ] || fail "a name was run as shell"
    assert_file_lines "$hostile/traces.jsonl" 8
    assert_contains in.sh "#SBATCH --chdir=\"$WORK/a \$(touch X) \`touch X\` \\\"b\""
    # Slurm would fill in what follows one percent sign.
    assert_contains sbatch.log '5%%.shards/slurm-merge.log'
) || exit 1
for wrong in "--output=a
touch X" "--sbatch=--time=1
touch X"; do
    case $wrong in
    --sbatch*) expect_exit 1 agent submit slurm --shards 2 "$wrong" -- run single --dataset x --output y ;;
    *) expect_exit 1 agent submit slurm --shards 2 -- run single --dataset x "$wrong" ;;
    esac
    check_err "a line break in"
done

step "examples/slurm.sh is what the command writes"
expect_exit 0 agent submit slurm --shards 8 --output slurm.sh -- run agents/react.lua --dataset gaia --output runs/big
program=$(readlink -f "$IPW_AGENT")
case $IPW_AGENT in *unconfined.sh) program=$IPW_CONFINED ;; esac
# Its path is quoted if it has a blank, and quoted again inside of --wrap; where lines are cut depends on it.
joined() { sed -e ':more' -e '/\\$/{N;s/ *\\\n */ /;b more' -e '}'; }
sed "s#'\\\\''$program'\\\\''#ipw-agent#g; s#'$program'#ipw-agent#g; s#$program#ipw-agent#g; s#$WORK#/home/me/study#g" slurm.sh | joined >made
joined <"$IPW_SOURCE_DIR/examples/slurm.sh" | cmp made - || fail "examples/slurm.sh is out of date"

end_test
