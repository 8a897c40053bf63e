# S-8, by its system calls: what a hermetic replay, a shown record and `serve --replay` do with a trace from a
# stranger. A replay opens no socket, starts no process and writes in its own folder; a server listens on
# loopback and takes what comes in, nothing else.
. "$(dirname "$0")/lib.sh"

command -v strace >/dev/null || skip "strace is not installed"
strace -f -o /dev/null true 2>/dev/null || skip "ptrace is not allowed here"
[ -z "${IPW_SANITIZE-}" ] || skip "a sanitizer's own calls would be counted"

expect_exit 0 agent run react --dataset gaia --model demo --limit 2 -o record -q
start_fake --bench 0
cp -r record bundle
damaged bundle
# It names a server, a program, an agent, tools and files of its own.
python3 - "$BASE_URL" <<'PY'
import json, sys
url = sys.argv[1]
manifest = json.load(open("bundle/manifest.json"))
manifest["config"].update(client_base_url=url, dataset="/etc/passwd", dataset_source="/etc/passwd", no_proc=False, no_web=False,
                          allow_native=True, lua_path=True, body={"x": url}, telemetry="exec=/bin/sh")
manifest["command"] = {"args": ["--base-url", url, "--agent", "bundle/evil.lua"], "cwd": "/"}
json.dump(manifest, open("bundle/manifest.json", "w"))
open("bundle/evil.lua", "w").write('error "run"')
lines = [json.loads(l) for l in open("bundle/events.jsonl")]
for e in lines:
    if e["event"] == "lm_inference_end": e["endpoint"] = url
lines[3:3] = [{"event": "note", "query": 1, "span": 0, "t_ns": lines[2]["t_ns"], "data": {"name": "effect", "id": 1000, "of": "proc",
               "value": [{"table": {"argv": ["/bin/sh", "-c", "touch owned"]}}]}}]
open("bundle/events.jsonl", "w").write("".join(json.dumps(e, sort_keys=True, separators=(",", ":")) + "\n" for e in lines))
PY

cat >calls.py <<'PY'
"""calls.py FILE FOLDER [listens]: the calls that strace wrote to FILE, of a program that may write below FOLDER only
("-": nowhere) and, with `listens`, may have one listening socket on loopback."""
import re, sys
path, folder, listens = sys.argv[1], sys.argv[2], "listens" in sys.argv
bad, seen, execs, listening = [], set(), 0, 0
for line in open(path, errors="replace"):
    m = re.match(r"\d+ +(\w+)\((.*)", line)
    if not m: continue # exits, signals, the second half of an interrupted call
    call, rest = m.groups()
    seen.add(call)
    if call in ("execve", "execveat"):
        execs += 1
        if execs > 1: bad.append(line)
    elif call in ("fork", "vfork") or call in ("clone", "clone3") and "CLONE_THREAD" not in rest:
        bad.append(line)
    elif call in ("open", "openat", "openat2", "creat"):
        writes = call == "creat" or re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", rest)
        name = re.search(r'"([^"]*)"', rest).group(1)
        allowed = folder != "-" and (name == folder or name.startswith(folder + "/") or "/cwd/" + folder in name)
        if writes and not allowed and name != "/dev/null" and " = -1 " not in rest: bad.append(line)
        if name.endswith("evil.lua") or name == "/etc/passwd": bad.append(line)
    elif call in ("mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "symlink", "symlinkat", "link", "linkat", "chmod", "fchmodat", "truncate"):
        names = re.findall(r'"([^"]*)"', rest)
        if not all(folder != "-" and (folder in n or n == "runs") for n in names) and " = -1 " not in rest: bad.append(line)
    elif call == "socket":
        if not listens or "AF_INET" not in rest: bad.append(line)
        listening += 1
    elif call == "bind":
        if not listens or not re.search(r'inet_addr\("127\.0\.0\.1"\)', rest): bad.append(line)
    elif call in ("connect", "socketpair") or call in ("sendto", "sendmsg") and not listens:
        bad.append(line)
if listening > 1: bad.append("%d sockets" % listening)
assert "execve" in seen and "openat" in seen, "strace saw nothing"
sys.exit("".join(bad[:5])) if bad else None
PY
IPW_AGENT=${IPW_CONFINED:-$IPW_AGENT} # its calls are counted: no shell in between
TRACE="strace -f -qq -e trace=network,process,open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,symlink,symlinkat,link,linkat,chmod,fchmodat,truncate"

mkdir cwd
cd cwd || fail "cwd"
step "S-8: shown"
IPW_WRAP="$TRACE -o ../shown" expect_exit 0 agent replay ../bundle
cd .. && { python3 calls.py shown - || fail "shown"; }

step "S-8: hermetic"
cd cwd || fail "cwd"
timeout 90 $TRACE -o ../hermetic "$IPW_AGENT" replay ../bundle --mode hermetic -o again >../out 2>../err </dev/null
code=$?
cd .. || fail "cd"
[ $code -eq 0 ] || [ $code -eq 4 ] || fail "exit status $code"
python3 calls.py hermetic again || fail "hermetic"
assert_eq "$(ls cwd)" again

step "S-8: served"
rm -rf cwd/again
mkfifo listening
(cd cwd && exec timeout -s TERM 90 $TRACE -o ../served "$IPW_AGENT" serve --port 0 --replay ../bundle --speed max >../listening 2>../serve.err) &
SERVE_PID=$!
FAKES="$FAKES $SERVE_PID"
read -r word url <listening
[ "$word" = listening ] || fail "$(cat serve.err)"
python3 - "$url" <<'PY' || fail "the served bundle"
import json, sys, urllib.request, urllib.error
url = sys.argv[1]
start = [e for e in map(json.loads, open("bundle/events.jsonl")) if e["event"] == "lm_inference_start"][0]
for stream in (False, True):
    body = dict(start["data"]["request"], messages=start["data"]["messages"], stream=stream)
    if not stream: body.pop("stream_options", None)
    reply = urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", json.dumps(body).encode()), timeout=60)
    assert reply.status == 200 and reply.read()
try:
    urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", b'{"model":"m","messages":[{"role":"user","content":"?"}]}'), timeout=60)
    assert False, "found"
except urllib.error.HTTPError as e:
    assert e.code == 404
PY
kill -TERM $SERVE_PID
wait $SERVE_PID
FAKES=$(echo "$FAKES" | sed "s/ $SERVE_PID\$//")
python3 calls.py served - listens || fail "served"
assert_eq "$(ls cwd)" ""

step "nobody was asked"
assert_eq "$(fake_requests)" 0 "(requests to the server that the trace names)"
[ ! -e owned ] && [ ! -e cwd/owned ] || fail "a program ran"

end_test
