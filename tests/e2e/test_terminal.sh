# What a person at a terminal gets: colours where they are wanted, lines that are edited, keys that end a display.
. "$(dirname "$0")/lib.sh"

printf '{"question":"Q?","answer":"42"}\n{"question":"Q2?","answer":"1"}\n' >rows.jsonl
cat >typist.py <<'EOF'
"""typist.py KEYS COMMAND...: runs it on a terminal, prints what the terminal got, and ends as it ended.  KEYS is a Python
list: the next one is typed when the last thing shown is a prompt ("> "), or when nothing more comes; the last one is
typed until the program has ended, which may throw away what came before it was ready.  libedit shows its prompt before
it takes the terminal out of line mode; a Ctrl-D in between reaches it as a NUL, which quotes the next one for good."""
import ast, os, pty, select, sys, termios, time
keys = [key.encode() for key in ast.literal_eval(sys.argv[1])]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
while True:
    ready = select.select([terminal], [], [], 0.5)[0]
    if ready:
        try:
            text = os.read(terminal, 65536)
        except OSError:
            break
        sys.stdout.buffer.write(text)
        shown += text
    if keys and shown and (not ready or shown.endswith(b"> ")):
        while shown.endswith(b"> ") and termios.tcgetattr(terminal)[3] & termios.ICANON:
            time.sleep(0.01)
        shown = b"" if len(keys) > 1 else shown
        os.write(terminal, keys.pop(0) if len(keys) > 1 else keys[0])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
EOF
at_terminal() { # CODE KEYS ARGS...
    code=$1 keys=$2
    shift 2
    timeout -k 5 60 python3 typist.py "$keys" "$IPW_AGENT" "$@" >out 2>err </dev/null
    assert_eq $? "$code" "(exit status: $*)"
}
escape=$(printf '\033[')
start_fake --bench 0
run() { output=$1; shift; env "$@" timeout -k 5 60 python3 typist.py '[]' "$IPW_AGENT" run single --dataset rows.jsonl --base-url "$BASE_URL" \
    --model fake-model --output "$output" >out 2>err </dev/null || fail "$output: exit status $?"; }

step "colours: on a terminal, unless the environment says otherwise"
run colour -u NO_COLOR TERM=xterm
assert_contains out "$escape"
run none NO_COLOR=1 TERM=xterm
run dumb -u NO_COLOR TERM=dumb
run ci -u NO_COLOR TERM=xterm CI=1
run unset -u NO_COLOR -u TERM
for value in 1 0 ''; do
    env -u NO_COLOR CLICOLOR_FORCE="$value" "$IPW_AGENT" replay colour >out 2>err || fail "replay"
    case $value in
    1) assert_contains out "$escape" ;;
    *) assert_lacks out "$escape" ;;
    esac
done
for words in "doctor --base-url $BASE_URL" "telemetry" "replay colour" "replay colour --follow" "list sensors"; do
    step "on a terminal: $words"
    # shellcheck disable=SC2086
    env -u NO_COLOR TERM=xterm timeout -k 5 60 python3 typist.py '[]' "$IPW_AGENT" $words >out 2>err </dev/null
    case $words in doctor*) ;; *) assert_eq $? 0 ;; esac
    [ -s out ] || fail "nothing was shown"
done

step "the prompt takes lines until its end, from a terminal and from a pipe"
at_terminal 0 '["1 + 1\r", "\r", "return 5 * 5\r", "\x04"]' repl --model demo
check_out 25
printf '1 + 1\n\nreturn 6 * 7' | "$IPW_AGENT" repl --model demo >out 2>err || fail "repl"
check_out 42
: | "$IPW_AGENT" repl --model demo >out 2>err || fail "repl at an end"

step "a key ends a display that goes on"
at_terminal 0 '["q"]' telemetry --watch
at_terminal 0 '["x", "q"]' telemetry --watch --json

end_test
