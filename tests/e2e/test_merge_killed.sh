# A merge that is killed at each of its writes, and before each rename and removal, starts again without harm.
. "$(dirname "$0")/lib.sh"

zone=$WORK/tree/intel-rapl:0
mkdir -p "$zone"
echo package-0 >"$zone/name"
echo 1000000 >"$zone/energy_uj"
echo 262143328850 >"$zone/max_energy_range_uj"
export IPW_POWERCAP_ROOT="$WORK/tree"
for i in 1 2 3 4; do echo "{\"id\":\"t$i\",\"question\":\"Question $i?\",\"answer\":\"42\"}"; done >rows.jsonl
step "three shards, and a merge of two of them"
for i in 0 1 2; do expect_exit 0 agent run tools --dataset rows.jsonl --model demo -q --output small --shard $i/3; done
mkdir fewer.shards
cp -r small.shards/0-of-3 small.shards/1-of-3 fewer.shards/
expect_exit 0 agent merge fewer.shards --partial --output fewer
expect_exit 0 agent merge small.shards --output whole

step "killed"
cp "$(dirname "$IPW_FAKE")/libfail_call.so" killer.so # LD_PRELOAD is cut at blanks
python3 - "${IPW_CONFINED:-$IPW_AGENT}" <<'PY' >out 2>err || fail "exit status $?"
import os, re, shutil, signal, subprocess, sys

def files(folder):
    """None: it is not there."""
    if not os.path.isdir(folder): return None
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder)) if name != "lock"}

def merge(**more):
    env = dict(os.environ, **more)
    return subprocess.run([sys.argv[1], "merge", "small.shards", "-q", "--output", "out.run"], env=env, capture_output=True, text=True)

def begin(before):
    for folder in ("out.run", "out.run.merging"): shutil.rmtree(folder, True)
    if before: shutil.copytree(before, "out.run")

kills = 0
shards = {i: files("small.shards/%d-of-3" % i) for i in range(3)}
first = ("write", "sync", "rename", "mkdir")
for before, kinds in ((None, first), ("fewer", ("sync", "rename", "unlink"))): # its writes are those of the first
    begin(before)
    merge(LD_PRELOAD="./killer.so", IPW_FAIL_LOG="calls%s" % before)
    counted = dict(re.findall("(.*) ([0-9]+)", open("calls%s" % before).read()))
    assert all(int(counted[kind]) > 0 for kind in kinds), counted
    for kind in kinds:
        for at in range(1, int(counted[kind]) + 1):
            begin(before)
            got = merge(LD_PRELOAD="./killer.so", IPW_FAIL_CALL=kind, IPW_FAIL_AT=str(at), IPW_FAIL_ERRNO="KILL")
            where = (before, kind, at)
            assert got.returncode == -signal.SIGKILL, (where, got)
            assert files("out.run") in (files(before) if before else None, files("whole")), (where, "neither the old run nor the new one")
            got = merge()
            assert got.returncode == 0, (where, got)
            assert files("out.run") == files("whole"), (where, "another merge")
            assert not os.path.exists("out.run.merging"), where
            kills += 1
assert shards == {i: files("small.shards/%d-of-3" % i) for i in range(3)}
print("%d kills: all held" % kills)
PY
assert_matches "$WORK/out" "[0-9]{2,} kills: all held"

end_test
