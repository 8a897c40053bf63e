# A pipe, a device or a socket in the place of a file is refused by name and not waited for; a file of a run with a
# second name is not written through.
# Sanitizer: pipes and devices in the place of files.
. "$(dirname "$0")/lib.sh"

echo '{"question":"What is 40 + 2?","answer":"42"}' >rows.jsonl
expect_exit 0 agent run tools --dataset gaia --limit 2 --model demo --output run
expect_exit 0 agent run tools --dataset gaia --limit 2 --model demo --output other
printf 'time,power\n2026-01-01T00:00:00Z,10\n' >meter.csv
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'

# quick ARGS...: ends by itself, not by a signal.
IPW_LIMIT_S=20
quick() {
    timeout -k 5 20 "$IPW_AGENT" "$@" >out 2>err </dev/null
    got=$?
    [ $got -lt 124 ] || fail "exit status $got: $*"
}

plant() { # plant KIND FILE
    case $1 in
    pipe) mkfifo "$2" ;;
    device) ln -s /dev/zero "$2" ;;
    socket) ln -s "$WORK/socket" "$2" ;;
    esac
}

for file in manifest.json summary.json events.jsonl traces.jsonl power.jsonl attempts.jsonl lock; do
    for kind in pipe device socket; do
        step "$kind for $file"
        rm -rf bad again && cp -r run bad && rm -f "bad/$file" && plant $kind "bad/$file"
        for command in "validate bad" "ledger bad" "score bad" "repair bad" "resume bad" "replay bad" "replay bad --mode hermetic -o again" \
            "export bad" "export bad --format mooncake" "compare bad other" "compare other bad" "meter bad --log meter.csv" \
            "ledger bad --check"; do
            # shellcheck disable=SC2086
            quick $command
        done
        case $file in manifest.json | traces.jsonl)
            quick validate bad
            [ $got -ne 0 ] || fail "validate took it"
            check_err "$file"
            ;;
        esac
    done
done
rm -rf bad again

step "what a user names"
mkfifo pipe.lua pipe.json pipe.csv pipe.jsonl
expect_exit 3 agent check ./pipe.lua
check_err "pipe.lua: a pipe (FIFO), not a regular file"
expect_exit 2 agent run ./pipe.lua --dataset rows.jsonl --model demo --output never
expect_exit 3 agent run single --dataset rows.jsonl --model demo --output never --prices pipe.json
check_err "pipe.json: a pipe (FIFO), not a regular file"
expect_exit 3 agent run single --dataset pipe.csv --model demo --output never
expect_exit 3 agent run single --dataset pipe.jsonl --model demo --output never
expect_exit 3 agent run single --dataset rows.jsonl --model demo --output never --prices /dev/zero
quick meter run --log pipe.csv
[ $got -ne 0 ] || fail "a pipe is a meter's log"
quick run single --dataset rows.jsonl --base-url https://127.0.0.1:1/v1 --model m --output never --cacert pipe.json
check_err "pipe.json: a pipe (FIFO), not a regular file"

step "a pipe that a shell hands over is read"
echo '{"demo":{"input_per_million":1,"output_per_million":1}}' >prices.json
cat prices.json | timeout -k 5 60 "$IPW_AGENT" run single --dataset rows.jsonl --model demo --output piped --prices /dev/stdin \
    >out 2>err
no_err "not a regular file"

step "a file of a run that has a second name stays as it is"
# A run that was stopped: one query is missing, and the tails are torn.
for file in events.jsonl traces.jsonl power.jsonl lock attempts.jsonl traces.jsonl.torn; do
    rm -rf half outside && cp -r run half && rm -f half/summary.json && mkdir outside
    sed -i '$d' half/traces.jsonl
    for torn in events traces; do printf '{"event":"no' >>half/$torn.jsonl; done
    [ -f half/$file ] || : >half/$file
    ln half/$file outside/file
    cp outside/file before
    quick resume half
    case $file in events.jsonl | traces.jsonl | lock)
        [ $got -ne 0 ] || fail "resume took $file"
        check_err "half/$file: the file has 2 names (hard links)"
        ;;
    esac
    cmp -s outside/file before || fail "resume wrote through $file"
    quick repair half
    cmp -s outside/file before || fail "repair wrote through $file"
done
damaged half bad

end_test
