# A real Slurm, one node on loopback: an array of four shards, one of which is killed and started again,
# and their merge, against the run that was not cut.  Needs root, slurm-wlm, munge and IPW_SLURM=1, because
# Slurm takes its time:
#
#     IPW_SLURM=1 ctest --preset dev -R e2e.slurm
# Long: it starts a Slurm.
. "$(dirname "$0")/lib.sh"
[ -n "${IPW_SLURM-}" ] || skip "IPW_SLURM=1 starts a Slurm on this machine, for a minute or two"
[ "$(id -u)" -eq 0 ] || skip "only root can start a Slurm"
for needed in slurmctld slurmd sbatch munged; do
    command -v $needed >/dev/null || skip "no $needed (slurm-wlm, munge)"
done

step "a Slurm of one node"
SLURM=$WORK/slurm
NODE=$(hostname -s)
mkdir -p "$SLURM/state" "$SLURM/spool" "$SLURM/munge"
chmod 700 "$SLURM/munge"
head -c 1024 /dev/urandom >"$SLURM/munge/key"
chmod 400 "$SLURM/munge/key"
cat >"$SLURM/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=$NODE(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$SLURM/munge/socket,cred_expire=3
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$SLURM/state
SlurmdSpoolDir=$SLURM/spool
SlurmctldPidFile=$SLURM/slurmctld.pid
SlurmdPidFile=$SLURM/slurmd.pid
SlurmctldLogFile=$SLURM/slurmctld.log
SlurmdLogFile=$SLURM/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=1
NodeName=$NODE NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=$NODE Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
EOF
export SLURM_CONF="$SLURM/slurm.conf"
munged --force --key-file="$SLURM/munge/key" --socket="$SLURM/munge/socket" --pid-file="$SLURM/munge/pid" \
    --log-file="$SLURM/munge/log" --seed-file="$SLURM/munge/seed" >out 2>&1 || fail "munged"
slurmctld -f "$SLURM_CONF" >out 2>&1 || fail "slurmctld"
slurmd -f "$SLURM_CONF" >out 2>&1 || fail "slurmd"
FAKES="$FAKES $(cat "$SLURM/munge/pid")"
# until COMMAND...: waits for it to succeed.
until_ok() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 900 ] || fail "waited in vain: $* ($(squeue 2>&1))"
        sleep 0.2
    done
}
is_idle() { sinfo -h -o %T | grep -qx idle; }
until_ok is_idle
FAKES="$FAKES $(cat "$SLURM/slurmctld.pid") $(cat "$SLURM/slurmd.pid")"

step "the array"
start_serve --ttft 300ms
RUN="run tools --dataset gaia-sample --model demo --base-url $BASE_URL --telemetry none"
mkdir -p runs
# shellcheck disable=SC2086 # words of a command line
expect_exit 0 agent submit slurm --shards 4 -o cut.slurm -- $RUN --output runs/cut
(
    # Slurm hands on what the shell has.
    sh cut.slurm >array.out 2>array.err
) || fail "$(cat array.err)"
array=$(sed -n 's/^array job \([0-9]*\),.*/\1/p' array.out)
merge=$(sed -n 's/.*merge job \([0-9]*\)$/\1/p' array.out)
[ -n "$array" ] && [ -n "$merge" ] || fail "no job: $(cat array.out)"

step "one task is killed in the middle and started again"
until_ok test -s runs/cut.shards/0-of-4/traces.jsonl
scontrol requeue "${array}_0" || fail "requeue"
ended() { ! squeue -h -j "$1" -o %T | grep -q .; }
until_ok ended "$array"
until_ok ended "$merge"
until_ok test -f runs/cut/summary.json

step "the merged run is the run that was not cut"
# shellcheck disable=SC2086
expect_exit 0 agent $RUN --output runs/whole -q
expect_exit 0 agent validate runs/cut
assert_json runs/cut.shards/0-of-4/manifest.json 'len(d["segments"]) == 2'
for key in query_id response_text is_resolved query_index; do
    assert_eq "$(json runs/cut/traces.jsonl "sorted(str(q[\"query_index\"]) + str(q[\"$key\"]) for q in d)")" \
        "$(json runs/whole/traces.jsonl "sorted(str(q[\"query_index\"]) + str(q[\"$key\"]) for q in d)")"
done
assert_json runs/cut/summary.json 'd["totals"]["queries"] == 22'
stop_serve
scontrol shutdown >/dev/null 2>&1
gone() { ! kill -0 "$1" 2>/dev/null; }
for pid in $(cat "$SLURM/slurmctld.pid" "$SLURM/slurmd.pid" 2>/dev/null); do until_ok gone "$pid"; done
end_test
