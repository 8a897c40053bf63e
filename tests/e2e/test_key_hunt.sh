# A program that a model wrote does not find the keys: more than twenty ways, as root and as an ordinary user.
. "$(dirname "$0")/lib.sh"

# Four keys: in OPENAI_API_KEY, in a variable with an innocent name that --header names, in a --header itself, in a
# proxy's address.  The process that starts the runner has them in its environment, as a user's shell does.
cat >launch.py <<'PY'
import json, os, sys
if len(sys.argv) > 1 and sys.argv[1] != "again":  # keys come in on a pipe, and go on in the environment
    keys = json.load(sys.stdin)
    env = dict(os.environ, OPENAI_API_KEY=keys["env"], INNOCENT=keys["innocent"], HUNT_HEADER=keys["header"],
               https_proxy="http://me:%s@127.0.0.1:1/" % keys["proxy"])
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.execve(sys.executable, [sys.executable, __file__, "again"] + sys.argv[1:], env)
pid = os.fork()
if pid == 0:
    env = dict(os.environ)
    header = env.pop("HUNT_HEADER")
    os.execve(sys.argv[2], sys.argv[2:] + ["--header", "X-Api-Key: " + header, "--header=X-Second: env:INNOCENT"], env)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
PY
cat >keys.py <<'PY'
import json, os
print(json.dumps({name: "Zq9-canary-%s-%s" % (name, os.urandom(12).hex()) for name in ("env", "innocent", "header", "proxy")}))
PY
KEYS=$(python3 keys.py)

# Without Landlock nothing keeps a program from other processes of its user; the runner is closed all the same.
OTHERS=$(python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1) > 0)')
[ "$OTHERS" = True ] || echo "note: no Landlock here: only the runner is looked at"
python3 - "$IPW_SOURCE_DIR/tests/e2e/key_hunt.py" "$OTHERS" <<'PY'
import json, sys
code = "OTHERS = %s\n" % sys.argv[2] + open(sys.argv[1]).read()
sse = lambda delta, finish=None: "sse " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
with open("hunt", "w") as f:
    f.write(sse({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {
        "name": "python", "arguments": json.dumps({"code": code, "seconds": 60})}}]}) + "\n")
    f.write(sse({}, "tool_calls") + "\ndone\n---\n" + sse({"content": "42"}) + "\n" + sse({}, "stop") + "\ndone\n")
PY
echo '{"question":"What is 40 + 2?","answer":"42"}' >rows.jsonl

hunt() { # hunt RUN COMMAND...: the command runs the program as somebody
    run=$1
    shift
    start_fake --script hunt
    printf '%s' "$KEYS" | timeout -k 5 120 "$@" python3 launch.py "$IPW_AGENT" run tools --tools python --dataset rows.jsonl --base-url \
        "$BASE_URL" --model fake-model --max-retries 0 --output "$run" >out 2>err || fail "exit status $?"
    stop_fake
    # The server did get three of them: the test tests something.
    assert_json "$run/traces.jsonl" 'd[0]["completed"]'
    python3 - "$run" <<'PY' >found || fail "$(cat found)"
import json, sys
said = [e for e in map(json.loads, open(sys.argv[1] + "/events.jsonl")) if e["event"] == "tool_call_end"]
text = said[0]["data"]["content"] if "content" in said[0]["data"] else json.dumps(said[0]["data"])
print(text)
ways = text.count("way ")
sys.exit("FOUND" in text or text.count(": nothing") != ways or ways < 20 or "tried %d ways" % ways not in text)
PY
    ! grep -rqF Zq9-canary- "$run" out err || fail "a key was written: $(grep -rlF Zq9-canary- "$run" out err)"
}

step "as who runs this test"
hunt own env

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    step "as an ordinary user"
    chmod 755 "$WORK" && mkdir nobody && chown 65534:65534 nobody && chmod 644 rows.jsonl launch.py
    hunt nobody/run env PATH=/usr/local/bin:/usr/bin:/bin setpriv --reuid 65534 --regid 65534 --clear-groups
fi

step "a runner that crashes leaves no image of its memory"
start_fake --bench 0 --delay-ms 60000
ulimit -c unlimited 2>/dev/null || true
"$IPW_AGENT" run single --dataset rows.jsonl --base-url "$BASE_URL" --model m --output crashed >out 2>err </dev/null &
RUN_PID=$!
await_lines "$FAKE_LOG"
kill -ABRT $RUN_PID
wait $RUN_PID
assert_eq "$(find "$WORK" -name 'core*' -type f | grep -c .)" 0 "(core files)"
damaged crashed

end_test
