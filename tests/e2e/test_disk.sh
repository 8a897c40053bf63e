# A disk that fails us: full, too small a limit, read-only, gone.  One clear message, exit 1, and what was
# written before can be read and gone on with (D-1, D-2, D-3, D-9, D-15, D-16).
# Sanitizer: what is freed after a write that failed.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 40; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
start_fake --bench 2

# whole RUN: every line of its files is one, and the run goes on from there to its end.
whole() {
    for file in "$1"/*.jsonl; do
        python3 -c 'import json,sys; [json.loads(l) for l in open(sys.argv[1])]; t = open(sys.argv[1]).read(); assert not t or t[-1] == "\n"' "$file" ||
            fail "$file is not whole"
    done
    expect_exit 0 agent ledger "$1"
    expect_exit 0 agent resume "$1" -q
    assert_json "$1/traces.jsonl" 'sorted(q["query_id"] for q in d) == ["q%04d" % i for i in range(40)]'
    expect_exit 0 agent ledger "$1" --check
}

step "D-3: a file size limit is an error, no death by SIGXFSZ"
expect_exit 1 sh -c 'ulimit -f 120 && exec "$0" run tools --dataset rows.jsonl --base-url "$1" --model fake-model \
    --output limited -q' "$IPW_AGENT" "$BASE_URL"
check_err "limited/"
check_err "File too large"
check_err "what was written before stays: free some space, then resume"
assert_eq "$(tail -1 err)" "ipw-agent: to continue: ipw-agent resume limited"
one_message
whole limited

# A disk of our own needs a mount: as root, or in a user namespace.
if mkdir small && mount -t tmpfs -o size=200k none small 2>/dev/null; then
    umount small
    step "D-1: a full disk"
    for size in 8k 64k 200k; do
        mount -t tmpfs -o size=$size none small || fail mount
        expect_exit 1 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
            --output small/run -q
        check_err "No space left on device"
        one_message
        cp -r small/run full$size
        umount small
        # Too small for a manifest: nothing was begun, and nothing is to be gone on with.
        [ -f full$size/manifest.json ] || continue
        sed -i "s|$WORK/small/run|$WORK/full$size|" full$size/manifest.json
        whole full$size
    done
    [ -f full200k/manifest.json ] || fail "200k are too few"

    step "D-2: no inode left: found before the first call"
    mount -t tmpfs -o size=10m,nr_inodes=4 none small || fail mount
    before=$(fake_requests)
    expect_exit 1 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output small/run -q
    check_err "No space left on device"
    one_message
    assert_eq "$(fake_requests)" "$before" "(requests)"
    umount small

    step "D-9: a read-only disk: refused before the first call, and a run on it cannot be gone on with"
    mount -t tmpfs -o size=10m none small || fail mount
    cp -r limited small/run
    mount -o remount,ro small || fail remount
    before=$(fake_requests)
    expect_exit 1 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output small/new -q
    check_err "Read-only file system"
    one_message
    expect_exit 1 agent resume small/run --rerun all -q
    check_err "Read-only file system"
    one_message
    assert_eq "$(fake_requests)" "$before" "(requests)"
    umount small
else
    echo "left out: D-1, D-2 and D-9 on a disk of our own (nothing can be mounted here)"
fi
if [ "$(id -u)" -ne 0 ]; then
    step "D-9: a folder that may not be written"
    mkdir closed
    chmod 555 closed
    expect_exit 1 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output closed -q
    check_err "Permission denied"
    one_message
fi

step "D-9: the folder is removed while the run goes on"
stop_fake
start_fake --bench 2 --delay-ms 50
"$IPW_AGENT" run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output gone -q \
    >out 2>err </dev/null &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
await_lines gone/traces.jsonl
rm -rf gone
wait $AGENT_PID
assert_eq $? 1 "(exit code)"
check_err "gone: was removed while the run was writing to it"
one_message
[ ! -e gone ] || fail "it came back"
assert_eq "$(fake_requests | awk '{ print ($1 < 100) }')" 1 "(it went on asking)"
stop_fake
start_fake --bench 2

step "D-16: whoever read our output went away; whoever reads stderr does not"
expect_exit 1 sh -c '"$0" run tools --dataset rows.jsonl --base-url "$1" --model fake-model --output closed1 -q \
    3>&1 >&- 1>/dev/full' "$IPW_AGENT" "$BASE_URL"
assert_json closed1/traces.jsonl 'len(d) == 40'

step "D-16: started with descriptors 0, 1 and 2 closed, none of the run's files takes their places"
bare() { # NAME CODE REDIRECTION
    expect_exit "$2" sh -c 'exec "$0" run tools --dataset rows.jsonl --base-url "$1" --model fake-model \
        --output "$2" --verbose '"$3" "$IPW_AGENT" "$BASE_URL" "$1"
    assert_json "$1/traces.jsonl" 'len(d) == 40'
    assert_json "$1/manifest.json" '[s["end"] for s in d["segments"]] == ["complete"]'
    expect_exit 0 agent validate "$1"
}
bare bare0 0 '<&-'
bare bare1 1 '>&-'
bare bare2 0 '2>&-'
bare bare 1 '<&- >&- 2>&-'

mkfifo full
# A reader that never reads: the pipe's 64 KiB fill up, and the rest is dropped, not waited for.
sleep 300 <full &
FAKES="$FAKES $!"
expect_exit 0 sh -c 'exec 2>full; head -c 70000 /dev/zero >&2 & sleep 0.2; kill $! 2>/dev/null
    exec "$0" run tools --dataset rows.jsonl --base-url "$1" --model fake-model --output unread --verbose' \
    "$IPW_AGENT" "$BASE_URL"
assert_json unread/traces.jsonl 'len(d) == 40'

step "D-15: too few descriptors for all that is asked: queries fail or wait, the run ends"
expect_exit 0 sh -c 'ulimit -n 40 && exec "$0" run tools --dataset rows.jsonl --base-url "$1" --model fake-model \
    --output few --concurrency 40 -q' "$IPW_AGENT" "$BASE_URL"
assert_json few/traces.jsonl 'len(d) == 40'

step "D-15: the soft limit, which we may raise, takes nothing from anybody"
stop_fake
start_fake --bench 0 --delay-ms 500
expect_exit 0 sh -c 'ulimit -S -n 40 && exec "$0" run single --dataset rows.jsonl --base-url "$1" \
    --model fake-model --output soft --concurrency 40 -q' "$IPW_AGENT" "$BASE_URL"
assert_json soft/traces.jsonl 'len(d) == 40 and all(q["outcome"] == "answered" for q in d)'

end_test
