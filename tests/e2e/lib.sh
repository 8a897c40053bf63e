# tests/e2e/lib.sh: helpers of the whole-program tests; sourced, POSIX sh.
#
#   . "$(dirname "$0")/lib.sh"      a fresh folder $WORK, entered; no keys, no user configuration
#   start_fake --bench 2            fake_llm in the background; sets BASE_URL, FAKE_PID, FAKE_LOG
#   start_serve ARGS                `ipw-agent serve ARGS` in the background; BASE_URL; stop_serve
#   start_tree DIR --watts-package 80 ...   a powercap tree whose counters run, in $WORK/DIR
#   truth books RUN, truth within RUN gpu=300   the joules of a run against what is known (truth.py)
#   expect_exit 1 agent run ...     runs, compares the exit code; output is in $WORK/out and err
#   check_out TEXT, check_err TEXT  the last command's output holds TEXT; no_err TEXT: it does not
#   check_words TEXT                the same of its standard output, wherever its lines are wrapped
#   on_terminal COLUMNS agent ARGS  the same on a terminal of that width, which ends with status 0
#   await_lines FILE                waits until something is written there
#   assert_fits FILE COLUMNS        no line of the file is wider
#   one_message, offers NAME        stderr is one message; it offers NAME as the one that was meant
#   assert_contains FILE TEXT       (also assert_lacks, assert_file_lines FILE N, assert_eq A B)
#   json FILE EXPR                  prints a Python expression of `d`: the document, or for .jsonl
#                                   the list of its lines;  assert_json FILE EXPR: it must be true
#   damaged RUN...                  these folders need not pass `validate` at the end
#   beside FUNCTION; await_beside   functions that mostly wait, at the same time: each in $WORK/FUNCTION
#   end_test                        last line of each test: nothing may be left over, and every
#                                   run below $WORK passes `validate`
#
# The exit trap stops what was started and, unless IPW_KEEP is set, removes $WORK.

set -u
: "${IPW_AGENT:?}" "${IPW_FAKE:?}" "${IPW_SOURCE_DIR:?}"

# Debian's python3 first: a version manager in its place takes ten times as long to start.
[ ! -x /usr/bin/python3 ] || PATH=/usr/bin:$PATH

# Programs that read what we write; test_official_readers.sh fetches them once.
IPW_READERS=${IPW_READERS-${XDG_CACHE_HOME:-$HOME/.cache}/ipw-agent-readers}
[ ! -d "$IPW_READERS/usr/bin" ] || PATH=$PATH:$IPW_READERS/usr/bin

WORK=$(mktemp -d "${TMPDIR:-/tmp}/ipw-e2e.XXXXXX") || exit 1
TEST_NAME=$(basename "$0" .sh)
FAKES=
FAKE_COUNT=0
STEP=start

mkdir "$WORK/home" "$WORK/datasets-none"
export HOME="$WORK/home" XDG_CONFIG_HOME="$WORK/home/config" XDG_DATA_HOME="$WORK/home/data"
export XDG_CACHE_HOME="$WORK/home/cache" HF_HOME="$WORK/home/hf" LC_ALL=C.UTF-8 NO_COLOR=1
# For trace_lines.py, which reads lines of traces.jsonl.
export PYTHONPATH="$IPW_SOURCE_DIR/tests/e2e" PYTHONDONTWRITEBYTECODE=1
# Sensors of this machine do not matter unless a test says so.
export IPW_SYSFS_ROOT="$WORK/no-sys" IPW_POWERCAP_ROOT="$WORK/no-powercap"
export IPW_NVML_LIBRARY="$WORK/no-nvml.so"
unset OPENAI_BASE_URL OPENAI_API_BASE OPENAI_API_KEY IPW_AGENT_DATASETS HF_HUB_CACHE HF_TOKEN \
    http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY 2>/dev/null || true
cd "$WORK" || exit 1

# can_confine: can bubblewrap make a sandbox here?  Without, the tests run, and all but those of the sandbox hold.
can_confine() { bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true 2>"$WORK/bwrap.err"; }
if [ -z "${IPW_CONFINED-}" ] && ! can_confine; then
    export IPW_CONFINED="$IPW_AGENT" IPW_AGENT="$IPW_SOURCE_DIR/tests/e2e/unconfined.sh"
fi

# npm_reached: can npm's registry be asked?  In seconds, where an installation would try for minutes.
npm_reached() {
    command -v npm >/dev/null && timeout 15 npm view is-number version --fetch-retries=0 >/dev/null 2>&1
}

stop_all() {
    for pid in $FAKES; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    FAKES=
}

on_exit() {
    code=$?
    stop_all
    cd / || exit 1
    if [ -n "${IPW_KEEP-}" ]; then
        echo "kept $WORK" >&2
    else
        rm -rf "$WORK"
    fi
    exit $code
}
trap on_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
    echo "FAILED $TEST_NAME: $STEP: $*" >&2
    for file in out err; do
        [ -s "$WORK/$file" ] || continue
        echo "--- std$file of the last command" >&2
        head -c 6000 "$WORK/$file" >&2
    done
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

step() { STEP=$*; }

# Run folders that a test has damaged, so that end_test does not hold them against the format.
DAMAGED=' '
damaged() {
    for run in "$@"; do DAMAGED="$DAMAGED$WORK/$run "; done
}

# beside FUNCTION: runs it with a folder and fakes of its own.  await_beside: waits for all, and fails if one failed.
BESIDE=
beside() {
    mkdir "$WORK/$1" || fail "mkdir"
    (
        function=$1 WORK=$WORK/$1 FAKES='' DAMAGED=' '
        trap stop_all EXIT
        trap 'exit 143' TERM
        cd "$WORK" || exit 1
        "$function"
        echo "$DAMAGED" >"$WORK/damaged"
    ) >"$WORK/$1.said" 2>&1 &
    BESIDE="$BESIDE $1:$!"
    FAKES="$FAKES $!"
}
await_beside() {
    for one in $BESIDE; do
        wait "${one#*:}" || fail "$(cat "$WORK/${one%:*}.said")"
        DAMAGED="$DAMAGED$(cat "$WORK/${one%:*}/damaged") "
    done
    BESIDE=
}

# start_fake ARGS...: log in $FAKE_LOG (requests), port in BASE_URL.
start_fake() {
    FAKE_COUNT=$((FAKE_COUNT + 1))
    FAKE_LOG=$WORK/fake$FAKE_COUNT.log
    fake_out=$WORK/fake$FAKE_COUNT.out
    # A pipe to wait on, not a sleep: read returns when the server has said where it listens.
    mkfifo "$fake_out" || fail "mkfifo"
    "$IPW_FAKE" --die-with-parent --log "$FAKE_LOG" "$@" >"$fake_out" 2>"$WORK/fake$FAKE_COUNT.err" &
    FAKE_PID=$!
    FAKES="$FAKES $FAKE_PID"
    word=
    read -r word FAKE_PORT <"$fake_out"
    [ "$word" = listening ] || fail "fake_llm did not start: $(cat "$WORK/fake$FAKE_COUNT.err")"
    BASE_URL=http://127.0.0.1:$FAKE_PORT/v1
}

stop_fake() {
    kill "$FAKE_PID" 2>/dev/null && wait "$FAKE_PID" 2>/dev/null
    FAKES=$(echo "$FAKES" | sed "s/ $FAKE_PID\$//")
}

# start_serve ARGS...: `ipw-agent serve` in the background; sets BASE_URL, SERVE_PID; remarks in serve.err.
start_serve() {
    serve_out=$WORK/serve.out
    rm -f "$serve_out"
    mkfifo "$serve_out" || fail "mkfifo"
    "$IPW_AGENT" serve --port 0 --exit-with-parent "$@" >"$serve_out" 2>"$WORK/serve.err" &
    SERVE_PID=$!
    FAKES="$FAKES $SERVE_PID"
    word=
    read -r word BASE_URL <"$serve_out"
    [ "$word" = listening ] || fail "serve did not start: $(cat "$WORK/serve.err")"
}

# Its exit status, which has to be 0.
stop_serve() {
    kill -TERM "$SERVE_PID" && wait "$SERVE_PID" || fail "serve: exit status $?: $(cat "$WORK/serve.err")"
    FAKES=$(echo "$FAKES" | sed "s/ $SERVE_PID\$//")
}

# start_tree DIR ARGS...: returns when it is there.  What fake_powercap writes comes late on a busy
# machine: hold a run's joules against its own rows (truth), not against watts times seconds.
start_tree() {
    tree=$WORK/$1
    shift
    mkfifo "$tree.ready" || fail "mkfifo"
    "$(dirname "$IPW_FAKE")/fake_powercap" "$tree" "$@" >"$tree.ready" 2>"$tree.err" &
    FAKES="$FAKES $!"
    word=
    read -r word <"$tree.ready"
    [ "$word" = ready ] || fail "fake_powercap did not start: $(cat "$tree.err")"
}

truth() { python3 "$IPW_SOURCE_DIR/tests/e2e/truth.py" "$@" || fail "truth $*"; }

# How many chat requests the last fake server got.
fake_requests() { grep -c '^#[0-9]* POST /v1/chat/completions' "$FAKE_LOG"; }

# expect_exit CODE COMMAND...: `agent` stands for the program under test.
expect_exit() {
    expected=$1
    shift
    if [ "$1" = agent ]; then
        shift
        set -- ${IPW_WRAP-} "$IPW_AGENT" "$@"
    fi
    timeout -k 5 "${IPW_LIMIT_S:-240}" "$@" >"$WORK/out" 2>"$WORK/err" </dev/null
    got=$?
    [ $got -eq "$expected" ] || fail "exit code $got instead of $expected: $*"
}

await_lines() {
    tries=0
    until [ -s "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || fail "$1: nothing was written"
        sleep 0.02
    done
}

on_terminal() {
    columns=$1
    shift 2
    timeout -k 5 "${IPW_LIMIT_S:-240}" python3 - "$columns" "$IPW_AGENT" "$@" >"$WORK/out" 2>"$WORK/err" <<'PY'
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    try:
        text = os.read(terminal, 65536)
    except OSError:  # its other end is closed
        break
    sys.stdout.buffer.write(text.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
    got=$?
    [ $got -eq 0 ] || fail "exit code $got on a terminal: $*"
}

assert_fits() {
    wide=$(python3 -c 'import sys; print(*(l for l in open(sys.argv[1], encoding="utf-8").read().split("\n") if len(l) > int(sys.argv[2])), sep="\n")' "$1" "$2")
    [ -z "$wide" ] || fail "wider than $2 columns: $wide"
}

assert_contains() { grep -qF -- "$2" "$1" || fail "$1 does not hold: $2"; }
assert_lacks() { ! grep -qF -- "$2" "$1" || fail "$1 holds: $2"; }
assert_matches() { grep -qiE -- "$2" "$1" || fail "$1 does not match: $2"; }
assert_eq() { [ "$1" = "$2" ] || fail "'$1' is not '$2' ${3-}"; }
assert_file_lines() {
    [ -f "$1" ] || fail "no file $1"
    assert_eq "$(wc -l <"$1" | tr -d ' ')" "$2" "(lines of $1)"
}
check_out() { assert_contains "$WORK/out" "$1"; }
check_err() { assert_contains "$WORK/err" "$1"; }
check_words() { tr -s ' \n' '  ' <"$WORK/out" | grep -qF -- "$1" || fail "standard output does not hold: $1"; }
no_err() { assert_lacks "$WORK/err" "$1"; }
match_err() { assert_matches "$WORK/err" "$1"; }
# One clear message, apart from the pointer to the help and the command that goes on with a run.
one_message() {
    assert_eq "$(grep -Evc 'see ipw-agent [a-z ]*--help|^ipw-agent: to continue: ' "$WORK/err")" 1 "(lines of the message)"
}
offers() { match_err "(is|did you mean) '?$1'? ?(meant)?\?"; }

json() {
    python3 - "$1" "$2" <<'PY'
import json, math, os, sys
import trace_lines
path, expr = sys.argv[1:3]
read = json.loads if os.path.basename(path) in ("events.jsonl", "power.jsonl") else trace_lines.loads
with open(path, encoding="utf-8") as f:
    d = [read(line) for line in f] if path.endswith(".jsonl") else json.load(f)
value = eval(expr, {"d": d, "math": math, "json": json})
print(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
PY
}

assert_json() {
    value=$(json "$1" "$2") || fail "cannot evaluate $2 on $1"
    [ "$value" = true ] || fail "$1: $2 is $value"
}

# Processes whose working folder is below $WORK, or that were started with it, other than ourselves.
leftovers() {
    python3 - "$WORK" $$ <<'PY'
import os, sys
work, ours = sys.argv[1], {int(sys.argv[2]), os.getpid(), os.getppid()}
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().replace(b"\0", b" ").decode(errors="replace")
        try:
            folder = os.readlink(f"/proc/{pid}/cwd")
        except PermissionError:  # the program closes /proc/PID to all but root; its command line is still shown
            folder = work if work in words else ""
    except OSError:  # it has ended
        continue
    if words and pid not in ours and (folder + "/").startswith(work + "/"):
        print(pid, words)
PY
}

end_test() {
    step "leftovers"
    stop_all
    left=$(leftovers)
    [ -z "$left" ] || fail "processes left: $left"
    step "every run is what docs/trace-format.md says"
    set --
    find "$WORK" -name manifest.json >"$WORK/manifests"
    while read -r manifest; do
        run=${manifest%/manifest.json}
        case $DAMAGED in *" $run "*) continue ;; esac
        set -- "$@" "$run"
    done <"$WORK/manifests"
    [ $# -eq 0 ] || IPW_WRAP='' expect_exit 0 agent validate "$@"
    echo "$TEST_NAME ok"
    exit 0
}
