# Output folders that cannot be written, and what is there already.  (Permissions do not stop root,
# so the folder is put where no folder can be.)
. "$(dirname "$0")/lib.sh"

start_fake --bench 0
printf '%s\n' '{"question":"What is 1 + 1?","answer":"42"}' >one.jsonl

step "below a file"
: >file
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output file/run
check_err file/run
one_message
assert_eq "$(fake_requests)" 0 "(requests)"

step "the folders above an output are made, by every command"
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --output new/run/one
for command in "export new/run/one --format csv" "export new/run/one --format mooncake" "export new/run/one --format sqlite" \
    "report new/run/one" "plot new/run/one --kind timeline" "analyze new/run/one" "score new/run/one --dataset one.jsonl" \
    "telemetry --duration 0.2s --record" "replay new/run/one --mode hermetic" "profile --dataset one.jsonl --base-url $BASE_URL" \
    "submit slurm --shards 2"; do
    case $command in
    *--record) set -- new/a/b/record.jsonl ;;
    plot*) set -- -o "new/plot/b/out.svg" ;;
    submit*) set -- -o "new/a/b/in.sh" -- run single --dataset one.jsonl --output x ;;
    *) set -- -o "new/$(echo "$command" | tr -cd 'a-z')/b/out.svg" ;;
    esac
    # Whatever else it says: the folder was made.
    # shellcheck disable=SC2086
    "$IPW_AGENT" $command "$@" >out 2>err
    [ -e "$(echo "$*" | grep -o 'new/[^ ]*')" ] || fail "$command made no output"
done

step "without permission"
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked
    chmod 555 locked
    expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" \
        --model fake-model --output locked/run
    check_err locked/run
fi

step "a folder that holds a run: refused, and nothing of it changed"
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output first
(cd first && cksum ./*) >before
expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model \
    --output first
check_err first
for option in "--rerun all" --force; do # which do nothing to a run that begins
    expect_exit 2 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model $option
    check_err "run: ${option% all} goes with --resume"
done
(cd first && cksum ./*) >after
cmp -s before after || fail "the first run's files were changed"

step "a full disk: the run stops with the reason"
if [ -c /dev/full ]; then
    expect_exit 1 sh -c '"$0" run single --dataset one.jsonl --base-url "$1" --model fake-model \
        --json --output full >/dev/full' "$IPW_AGENT" "$BASE_URL"
    [ -s full/traces.jsonl ] || fail "the trace was lost with standard output"
    for command in "show agents/react.lua" "list agents" "doctor" "run --help" "--help" "--version" \
        "validate full --json" "score full --dataset one.jsonl --dry-run" "export full" "replay full"; do
        expect_exit 1 sh -c '"$0" $1 >/dev/full' "$IPW_AGENT" "$command"
        check_err "No space left on device"
    done

    for command in "ledger full" 'tool calculator {"expression":"1"}'; do
        expect_exit 1 sh -c '"$0" $1 >/dev/full' "$IPW_AGENT" "$command"
        check_err "standard output: "
    done
fi

step "a reader that has seen enough is no failure"
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --output whole
for command in 'show agents/react.lua' 'list tools' 'validate whole'; do
    # shellcheck disable=SC2086
    { (trap '' PIPE && sleep 0.2 && exec "$IPW_AGENT" $command 2>err) && echo fine >status; } | true
    [ -s status ] || fail "$command | true: $(cat err)"
    rm status
done

step "without --output: a folder below runs/, named in the output"
expect_exit 0 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model
set -- runs/single_fake_model_one_*
[ $# -eq 1 ] && [ -f "$1/traces.jsonl" ] || fail "no run folder: $*"
cat out err | grep -qF "$1" || fail "$1 is not named"

end_test
