#!/bin/sh
# Who else is at work on the GPUs: a foreign process is named and refuses a run under --require-quiet;
# the model's server, what it started, and what cannot be told whose it is are not foreign.
. "$(dirname "$0")/lib.sh"

STUB=$IPW_BINARY_DIR/tests/fake/libnvidia-ml-stub.so
export IPW_NVML_LIBRARY="$STUB" IPW_STUB_NVML="$WORK/nvml.txt"
printf '{"id":"q1","prompt":"What is 6 times 7?","answer":"42"}\n' >rows.jsonl

# gpu PID...: a GPU on which these compute
gpu() {
    {
        echo "device GPU-aa Stub_H200 700000"
        echo "energy 0 counter watts=300 period_ms=20"
        for pid in "$@"; do echo "process 0 $pid 1000000"; done
    } >nvml.txt
}
run() {
    expect_exit "$1" agent run single --dataset rows.jsonl --base-url "$BASE_URL" \
        --model fake-model --output "$2" ${3-}
}

# The server, and a child that it has (as an engine has its workers).
mkfifo server.out
sh -c 'sleep 600 & echo $! >worker.pid; exec "$IPW_FAKE" --bench 0' >server.out 2>server.err &
SERVER=$!
read -r word port <server.out
assert_eq "$word" listening
BASE_URL=http://127.0.0.1:$port/v1
WORKER=$(cat worker.pid)
FAKES="$FAKES $WORKER $SERVER"
sleep 600 &
FOREIGN=$!
FAKES="$FAKES $FOREIGN"

step "another program computes on the GPU"
gpu "$FOREIGN"
run 1 refused --require-quiet
check_err "--require-quiet: "
check_err "process $FOREIGN (sleep) computes on gpu0"
[ ! -e refused ] || fail "a refused run left a folder"
run 0 warned
check_err "the machine is not quiet: "
assert_json warned/manifest.json '"computes on gpu0" in d["not_quiet"]'

step "the model's server and its children are ours, whatever else is there"
gpu "$SERVER" "$WORKER"
run 0 served
no_err "computes on"
assert_json served/manifest.json '"computes on" not in (d["not_quiet"] or "")'
gpu "$WORKER" "$SERVER" "$FOREIGN"
run 0 mixed
assert_json mixed/manifest.json '"process %d " % int(open("worker.pid").read()) not in d["not_quiet"] and "(sleep) computes on gpu0" in d["not_quiet"]'

step "a process of another container tells nothing"
gpu 4194303
run 0 hidden
no_err "computes on"

step "nobody on the GPU"
gpu
run 0 alone
no_err "computes on"

end_test
