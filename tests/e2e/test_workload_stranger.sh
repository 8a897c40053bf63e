# S-8: a workload from somebody else is data.  Replaying it connects to --base-url and to nothing else, starts
# no program, and writes only in the new run's folder, whatever it names: what the kernel saw (strace).
. "$(dirname "$0")/lib.sh"
[ -z "${IPW_SANITIZE-}" ] || skip "the sanitizers' own system calls are not the program's"
command -v strace >/dev/null || skip "strace is not installed"
strace -qq -o probe.trace true 2>/dev/null || skip "strace may not trace here"

step "a record and a file that name tools, servers, agents and paths"
start_fake --bench 0
OTHER=$((FAKE_PORT == 1 ? 2 : 1))
mkdir evil
cat >evil/manifest.json <<JSON
{"config":{"agent":"$WORK/evil/agent.lua","base_url":"http://127.0.0.1:$OTHER/v1","concurrency":4,"dataset":"$WORK/evil/data.lua",
 "endpoints":["http://127.0.0.1:$OTHER/v1"],"tools":["$WORK/evil/tool.lua"],"telemetry":["exec:touch $WORK/pwned"]},"status":"complete"}
JSON
echo "os.execute('touch $WORK/pwned')" | tee evil/agent.lua evil/data.lua >evil/tool.lua
python3 - "$WORK" "$OTHER" <<'PY'
import json, sys
work, other = sys.argv[1:]
t = 0
def line(event, **more):
    global t
    t += 1000000
    print(json.dumps(dict(more, event=event, t_ns=t), sort_keys=True, separators=(",", ":")), file=out)
out = open("evil/events.jsonl", "w")
line("run_start", query=-1)
for q, name in enumerate(["../../pwned", "/etc/passwd\u0000x", "a\u001b]0;owned\u0007", "$(touch %s/pwned)" % work, "-o"]):
    line("query_start", query=q, id=name, data={"prompt": "`touch %s/pwned`" % work, "files": ["../../pwned", "/etc/passwd"],
         "system": None, "metadata": {"file_name": "/etc/passwd"}})
    line("lm_inference_start", query=q, span=1, attempt=1, model="../pwned", endpoint="http://127.0.0.1:%s/v1" % other,
         data={"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:%s/x.png" % other}}]},
                            {"role": "system", "content": "file:///etc/passwd"}], "messages_kept": 0,
               "request": {"base_url": "http://127.0.0.1:%s/v1" % other, "tools": [{"type": "function", "function": {"name": "shell"}}],
                           "user": "http://127.0.0.1:%s" % other}})
    line("lm_inference_end", query=q, span=1, attempt=1, outcome="ok", input_tokens=5, output_tokens=2, calls=1,
         endpoint="http://127.0.0.1:%s/v1" % other,
         data={"text": "", "calls": [{"id": "c", "name": "python", "arguments": "{\"code\":\"open('%s/pwned','w')\"}" % work}]})
    line("tool_call_start", query=q, span=2, name="python", call_id="c", data={"arguments": "{}"})
    line("tool_call_end", query=q, span=2, name="python", ok=True, outcome="ok", result_bytes=1, data={"result": "x"})
    line("query_end", query=q, id=name, completed=True, outcome="answered", data={"answer": "x"})
line("run_end", query=-1)
rows = open("evil.jsonl", "w")
for i, name in enumerate(["../../pwned", "/tmp/pwned", "$(touch %s/pwned)" % work, "\u202e", 7, None]):
    print(json.dumps({"timestamp": i, "session_id": name, "input_length": 600, "output_length": 2, "hash_ids": [i, -1],
                      "endpoint": "http://127.0.0.1:%s" % other, "agent": "evil/agent.lua", "delay": 1}), file=rows)
PY

# seen.py TRACE PORT ALLOWED...: what the kernel was asked for that a replay has no business with.
cat >seen.py <<'PY'
import re, sys
trace, port, allowed = sys.argv[1], sys.argv[2], sys.argv[3:]
bad, connected, executed = [], 0, 0
WRITES = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)")
MAKES = ("mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "link", "linkat", "symlink",
         "symlinkat", "mknod", "mknodat", "chmod", "fchmodat", "chown", "fchownat", "lchown", "truncate", "creat", "utimensat", "setxattr")
for text in open(trace, errors="replace"):
    m = re.match(r"(?:\d+\s+)?(\w+)\((.*)", text)
    if not m:
        continue
    call, rest = m.groups()
    if rest.rstrip().endswith("EEXIST (File exists)"):
        continue  # a folder on the way that is there
    paths = re.findall(r'"((?:[^"\\]|\\.)*)"', rest)
    if call.startswith("execve"):
        executed += 1
    elif call in ("fork", "vfork") or call in ("clone", "clone3") and "CLONE_THREAD" not in rest:
        bad.append("a process: " + text)
    elif call == "connect" or call == "sendto" and "sin_port" in rest:
        if "htons(%s)" % port in rest and "127.0.0.1" in rest:
            connected += 1
        else:
            bad.append("a connection: " + text)
    elif call in ("bind", "listen", "accept", "accept4"):
        bad.append("a door: " + text)
    elif call in MAKES or call in ("open", "openat", "openat2") and WRITES.search(rest):
        for path in paths:
            if path.startswith("/proc/self/task/"):  # a thread gets its name
                continue
            if not any(path == a or path.startswith(a + "/") or path.startswith(a + ".") for a in allowed):
                bad.append("a file: " + text)
    elif call == "socket" and "SOCK_STREAM" not in rest:
        bad.append("a socket: " + text)
assert executed == 1, "%d programs were started" % executed
assert connected > 0, "it never connected: the trace shows nothing"
assert not bad, "".join(bad)
PY
strange() { # NAME ARGS...
    name=$1
    shift
    IPW_WRAP="strace -f -qq -s 4096 -e trace=%network,%process,%file -o $WORK/$name.trace" \
        expect_exit 0 agent replay "$@" --mode workload --base-url "$BASE_URL" --model fake-model --output "$WORK/$name"
    python3 seen.py "$name.trace" "$FAKE_PORT" "$WORK/$name" "$name" /dev/null /proc/self/coredump_filter /dev/tty \
        .owner || fail "$name" # .owner: of a folder that a killed run of someone left in /tmp
    [ ! -e pwned ] && [ ! -e ../pwned ] || fail "something of the trace was carried out"
    assert_lacks out "$(printf '\033')"
}

IPW_AGENT=${IPW_CONFINED:-$IPW_AGENT} # its calls are counted: no shell in between
step "the record"
strange run evil
check_out "5 of 5 requests sent"
step "in an open loop"
strange open evil --schedule open
step "rows"
strange lines evil.jsonl
check_out "6 of 6 requests sent"
damaged evil
end_test
