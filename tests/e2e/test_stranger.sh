# S-6, S-7, S-8: a trace from a stranger is data. Shown, replayed, served or exported it opens no socket,
# starts no process, writes nothing outside of the new folder and does nothing to a terminal.
# Sanitizer: a trace from a stranger.
. "$(dirname "$0")/lib.sh"

step "the bundle: a run that names files, programs, servers and tools of its own, and is full of escapes"
expect_exit 0 agent run react --dataset gaia --model demo --limit 2 -o record -q
start_fake --bench 0 # nobody is to ask it
damaged bundle named
cat >plant.py <<'PY'
"""plant.py OUT URL: the record, made hostile."""
import json, os, shutil, sys, trace_lines
out, url = sys.argv[1:3]
shutil.copytree("record", out)
BAD = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066</script><script>alert(1)</script>=cmd|'/c calc'!A1 ![x](http://evil/x.png)\r\n"
manifest = json.load(open(out + "/manifest.json"))
manifest["config"].update(client_base_url=url, base_urls=[url], dataset="/etc/passwd", dataset_source="/etc/passwd",
                          output="../../outside", lua_path=True, allow_native=True, path=[out], body={"x": url})
if out == "named":
    manifest["config"].update(agent_file=out + "/evil.lua", agent="../../evil", tools=[out + "/evil.lua", "/bin/sh"])
manifest["command"] = {"args": ["--agent", out + "/evil.lua", "--allow-proc", "--base-url", url], "cwd": "/"}
manifest["replay"] = {"agent_file": out + "/evil.lua", "mode": "tools", "of": "/"}
json.dump(manifest, open(out + "/manifest.json", "w"))
open(out + "/evil.lua", "w").write('local f = require "ipw.fs"\nreturn { name = "evil", run = function() f.write("owned", "x") return "evil" end }')
lines = [json.loads(l) for l in open(out + "/events.jsonl", encoding="utf-8")]
for e in lines:
    if e["event"] == "query_start":
        e["id"] = "../../" + e["id"] + BAD
        if not out.startswith("named"): e["id"] = e["id"].replace("\r\n", "\n")
        e["data"]["metadata"] = {"file_path": "/etc/passwd", "url": url}
    if e["event"] == "lm_inference_end":
        e["endpoint"] = url
        e["model"] = BAD
        e["data"]["model"] = url
        e["data"]["reasoning"] = BAD
    if e["event"] == "tool_call_end": e["error"] = BAD
def note(**data): return {"event": "note", "query": 1, "span": 0, "t_ns": lines[2]["t_ns"], "data": data}
lines[3:3] = [note(name="effect", id=1000, of="proc", value=[{"table": {"argv": ["/bin/sh", "-c", "touch owned"]}}]),
              note(name="native_module", file="/lib/evil.so", module="evil")]
open(out + "/events.jsonl", "w", encoding="utf-8").write("".join(
    json.dumps(e, sort_keys=True, separators=(",", ":")) + "\n" for e in lines))
traces = [trace_lines.loads(l) for l in open(out + "/traces.jsonl", encoding="utf-8")]
for t in traces:
    t.update(query_id="../../" + t["query_id"] + BAD, response_text=BAD, answer=BAD, error=BAD, model=url)
open(out + "/traces.jsonl", "w", encoding="utf-8").write("".join(json.dumps(t, sort_keys=True, separators=(",", ":")) + "\n" for t in traces))
PY
python3 plant.py bundle "$BASE_URL" && python3 plant.py named "$BASE_URL" || fail "plant.py"
BEFORE=$(ls -A . home)

# Nothing that a terminal obeys: control characters but line feeds (and our own colours), bidirectional marks.
harmless() {
    for file in "$@"; do
        python3 - "$file" <<'PY' || fail "$file is not harmless"
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
found = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
sys.exit(f"{sys.argv[1]}: {found[:5]}" if found else 0)
PY
    done
}

step "S-6: what is printed of it"
for what in "replay bundle" "replay bundle --follow" "replay bundle --query q0001" "compare bundle bundle" "validate bundle" \
    "score bundle --dataset gaia --dry-run" "ledger bundle"; do
    timeout 60 "$IPW_AGENT" $what >out 2>err </dev/null
    harmless out err
done
expect_exit 0 agent replay bundle
check_out "owned" # shown, but as text

step "S-7: what is exported is JSON: markup and formulas are text in it, and nothing is left unescaped"
for format in jsonl mooncake; do
    expect_exit 0 agent export bundle --format $format
    harmless out
    python3 -c 'import json, sys; [json.loads(l) for l in open("out")]' || fail "$format"
done

step "S-8: hermetic: nothing that it names is asked, run or read"
expect_exit 2 agent replay named --mode hermetic -o named-again
timeout 60 "$IPW_AGENT" replay bundle --mode hermetic -o again >out 2>err </dev/null
code=$?
[ $code -eq 0 ] || [ $code -eq 4 ] || [ $code -eq 3 ] || fail "exit status $code"
harmless out err
rm -rf again

step "S-8: served: to clients, and nothing else"
FAKE_URL=$BASE_URL
start_serve --replay bundle
python3 - "$BASE_URL" <<'PY' || fail "the served bundle"
import json, sys, urllib.request, urllib.error
url = sys.argv[1]
def ask(body):
    try: return urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", json.dumps(body).encode()), timeout=60)
    except urllib.error.HTTPError as e: return e
lines = [json.loads(l) for l in open("bundle/events.jsonl")]
start = [e for e in lines if e["event"] == "lm_inference_start"][0]
got = ask(dict(start["data"]["request"], messages=start["data"]["messages"], stream=False, stream_options=None))
assert got.status == 200, got.read()
missed = ask({"model": "m", "messages": [{"role": "user", "content": "?"}]})
assert missed.status == 404
assert all(len(v) < 200 and v.isprintable() for v in list(got.headers.values()) + list(missed.headers.values()))
json.loads(missed.read())
PY
stop_serve
harmless serve.err
BASE_URL=$FAKE_URL

step "nobody was asked, nothing was written"
assert_eq "$(fake_requests)" 0 "(requests to the server that the trace names)"
rm -f serve.out serve.err
AFTER=$(ls -A . home)
assert_eq "$BEFORE" "$AFTER" "(files)"
[ ! -e ../owned ] && [ ! -e owned ] && [ ! -e ../outside ] || fail "it wrote"

end_test
