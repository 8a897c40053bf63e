# A run that is shared without what was said in it: none of 120 planted secrets is left, and it can still
# be replayed as a workload; so can a run that never stored a text.
. "$(dirname "$0")/lib.sh"

step "a run with secrets everywhere"
# SECRETnnX: in prompts, metadata, system texts, replies, tool descriptions, arguments and results, errors, notes, effects.
python3 - <<'PY'
import json
with open("rows.jsonl", "w") as f:
    for i in range(10):
        print(json.dumps({"question": "Where is SECRET%02dX hidden?" % i, "answer": "x", "key": "SECRET%02dX" % (10 + i),
                          "owner": "SECRET%02dX" % (20 + i)}), file=f)
PY
mkdir tools
cat >tools/vault.lua <<'LUA'
return { name = "vault", about = "Opens SECRET30X.", input = { { "key", "string", "Such as SECRET31X.", optional = true } },
  run = function(args) return "behind it: SECRET32X and " .. tostring(args.key) end }
LUA
cat >spy.lua <<'LUA'
local llm, tools, run = require "ipw.llm", require "ipw.tools", require "ipw.core.run"
local n = 0
return { name = "spy", run = function(query)
  local kit <close> = tools.open { "vault" }
  run.note("mine", '{"text":"SECRET33X"}')
  local thread = { llm.system "Tell nobody SECRET34X.", llm.user(query.prompt) }
  for k = 1, 2 do
    local reply = llm.chat { messages = thread, tools = kit.schemas, stop = { "SECRET35X" } }
    thread[#thread + 1] = { role = "assistant", content = "SECRET36X", tool_calls = { { id = "c" .. k, type = "function",
      ["function"] = { name = "vault", arguments = '{"key":"SECRET37X"}' } } } }
    local results = kit:call_all { { id = "c" .. k, name = "vault", arguments = '{"key":"SECRET38X"}' } }
    for _, result in ipairs(results) do thread[#thread + 1] = result end
  end
  if query.prompt:find "09X" then error "SECRET39X" end
  return "the answer is SECRET40X, " .. query.prompt
end }
LUA
start_fake --bench 0 --prompt-tokens 50
expect_exit 0 agent run spy.lua --path . --path tools --dataset rows.jsonl --base-url "$BASE_URL" -o record --quiet
# What a model says is not ours to script here: it is planted in the record.
python3 - <<'PY'
import json
lines = [json.loads(l) for l in open("record/events.jsonl")]
k = 0
for e in lines:
    if e["event"] == "lm_inference_end":
        e["data"]["text"] = "SECRET%02dX said it" % (41 + k % 9)
        e["data"]["calls"] = [{"id": "c", "name": "vault", "arguments": "{\"key\":\"SECRET%02dX\"}" % (41 + k % 9)}]
        e["data"]["reasoning"] = "I think of SECRET%02dX" % (41 + k % 9)
        k += 1
open("record/events.jsonl", "w").write("".join(json.dumps(e, sort_keys=True, separators=(",", ":")) + "\n" for e in lines))
PY
[ "$(cat record/* | grep -o 'SECRET[0-9][0-9]X' | sort -u | wc -l)" -eq 50 ] || fail "not planted: $(cat record/* | grep -o 'SECRET[0-9][0-9]X' | sort -u | tr '\n' ' ')"

step "all"
expect_exit 0 agent export record --format run --redact all -o shared
! grep -rho 'SECRET[0-9]*' shared || fail "secrets are left"
assert_json shared/traces.jsonl 'len(d) == 10 and all(len(t["turns"]) == 2 and t["total_output_tokens"] > 0 for t in d)'
expect_exit 0 agent replay shared
expect_exit 0 agent replay shared --mode workload --base-url "$BASE_URL" -o again
check_out "20 of 20 requests sent"
python3 - <<'PY' || fail "lengths"
import json
def sent(run): return [e["data"] for e in map(json.loads, open(run + "/events.jsonl")) if e["event"] == "lm_inference_start"]
def sizes(run): return sorted((d["messages_kept"], tuple((m["role"], len(m.get("content") or "")) for m in d["messages"])) for d in sent(run))
assert sizes("record") == sizes("shared") == sizes("again")
system = {d["messages"][0]["content"] for d in sent("shared") if not d["messages_kept"]}
assert len(system) == 1, "equal texts are equal words"
PY
expect_exit 0 agent export record --redact all
! grep -o 'SECRET[0-9]*' out || fail "secrets are left"
expect_exit 0 agent export record --format mooncake
! grep -o 'SECRET[0-9]*' out || fail "secrets are left"

step "text or tools alone"
expect_exit 0 agent export record --format run --redact tools -o notools
! grep -rho 'SECRET3[278]X' notools || fail "a tool's secret is left"
grep -q SECRET00X notools/events.jsonl || fail "the prompt is gone"
expect_exit 0 agent export record --format run --redact text -o notext
! grep -rho 'SECRET\(0[0-9]\|1[0-9]\|2[0-9]\|34\|40\)X' notext || fail "a text's secret is left"
grep -q SECRET32X notext/events.jsonl || fail "the tool's result is gone"

step "50 more, wherever a record can hold a text: headers, bodies, hex, addresses, paths, hosts, errors, attempts"
python3 - <<'PY'
import json, shutil, trace_lines
shutil.copytree("record", "full")
count = -1
def secret():
    global count
    count += 1
    return "HIDDEN%02dY" % count
def dump(path, lines): open(path, "w").write("".join(json.dumps(l, sort_keys=True, separators=(",", ":")) + "\n" for l in lines))
lines = [json.loads(l) for l in open("full/events.jsonl")]
first = lambda kind: next(e for e in lines if e["event"] == kind)
start = first("query_start")
start["data"].update(files=[secret() + ".txt"], level=secret(), metadata={"deep": [{"er": secret()}]}, system=secret())
ask = first("lm_inference_start")
ask["data"]["request"].update(user=secret(), metadata={"x": secret()}, logit_bias={"1": 2}, stop=[secret()],
    response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"description": secret()}}})
said = first("lm_inference_end")
said.update(endpoint="http://%s.example:8000/v1" % secret(), error="HTTP 500 " + secret())
said["data"].update(error=secret(), error_type=secret(), logprobs=[{"token": secret(), "logprob": -1.0, "top_logprobs": [{"token": secret()}]}],
    others=[{"index": 1, "finish": "stop", "text": secret()}], timings={"model_path": secret()})
called, got = first("tool_call_start"), first("tool_call_end")
called["data"]["arguments"] = {"path": "/home/" + secret(), "list": [secret(), {"k": secret()}]}
got.update(error=secret())
got["data"].update(content=secret(), final=True)
end = first("query_end")
end.update(error="agent.lua:3: " + secret())
end["data"].update(answer=secret(), response=secret(), score={"why": secret()})
at, now = lines.index(end), end["t_ns"] - 1
def web(kind, n, **more): return dict({"event": kind, "kind": "http", "name": "GET " + secret() + ".example", "query": end["query"], "span": 90 + n, "t_ns": now}, **more)
hexed = secret()
lines[at:at] = [
    web("span_start", 1, data={"method": "GET", "url": "https://me:%s@%s/%s?q=%s" % (secret(), secret(), secret(), secret())}),
    web("span_end", 1, ok=True, outcome="ok", error=None, result_bytes=9, data={"status": 200, "type": "text/html", "url": "http://" + secret(),
        "headers": ["set-cookie", "sid=" + secret(), "x-" + secret().lower(), "1"], "body": secret(), "bytes": 9}),
    web("span_start", 2, data={"method": "POST", "url": "http://" + secret()}),
    web("span_end", 2, ok=False, outcome="error", error="cannot resolve " + secret(), result_bytes=9, data={"code": secret(), "body_hex": hexed.encode().hex(), "bytes": 9}),
    {"event": "span_start", "kind": "event", "name": secret(), "query": end["query"], "span": 93, "t_ns": now, "data": {"what": secret()}},
    {"event": "span_end", "kind": "event", "name": secret(), "ok": True, "outcome": "ok", "query": end["query"], "span": 93, "t_ns": now, "data": {"what": secret()}},
    {"event": "note", "query": end["query"], "span": 0, "t_ns": now, "data": {"name": "native_module", "file": "/opt/" + secret(), "module": secret()}},
    {"event": "note", "query": end["query"], "span": 0, "t_ns": now, "data": {"name": "effect", "id": 7, "of": "fs.read", "value": [secret(), {"hex": secret().encode().hex()}]}},
    {"event": "note", "query": end["query"], "span": 0, "t_ns": now, "data": {"name": secret(), "text": secret()}}]
dump("full/events.jsonl", lines)
manifest, summary = (json.load(open("full/%s.json" % f)) for f in ("manifest", "summary"))
manifest["config"].update(telemetry="prometheus=http://" + secret(), body={"user": secret()}, dataset_source="/data/" + secret(), agent_file="/home/" + secret())
manifest["segments"][0].update(forced=["the dataset was " + secret()], not_quiet="python " + secret())
manifest["hardware"]["verdicts"] = [{"name": "exec", "reason": "io", "text": "/root/%s.sh: no" % secret()}]
manifest["hardware"]["host"] = secret()
summary.update(energy_note="no " + secret(), note=secret())
json.dump(manifest, open("full/manifest.json", "w"))
json.dump(summary, open("full/summary.json", "w"))
dump("full/power.jsonl", [{"basis": {}, "format": 2, "sources": [{"name": "prometheus", "note": "http://" + secret(), "channels": [], "period_ns": 1}],
    "verdicts": [{"code": "ok", "name": "x", "text": secret()}]}])
trace = trace_lines.loads(open("full/traces.jsonl").readline())
trace.update(query_text=secret(), response_text=secret(), answer=secret(), error=secret(), unscorable_reason=secret(), metadata={"a": secret()},
    score_metadata={"b": [secret()]}, superseded="cut")
trace["turns"][0].update(error=secret(), endpoint="http://" + secret())
trace["turns"][0]["spans"] = [{"kind": "http", "name": "GET " + secret(), "error": secret(), "outcome": "error"}, {"kind": "tool", "name": "vault", "error": secret()}]
trace["spans_before"] = [{"kind": "event", "name": secret(), "error": None}]
dump("full/attempts.jsonl", [trace])
dump("full/warmup.jsonl", [dict(trace, query_text=secret())])
assert count >= 69, count
open("hidden", "w").write("".join("HIDDEN%02dY\nhidden%02dy\n%s\n" % (i, i, ("HIDDEN%02dY" % i).encode().hex()) for i in range(count + 1)))
PY
damaged full clean
expect_exit 0 agent export full --format run --redact all -o clean
ls full | sort >files && ls clean | sort | cmp -s - files || fail "files: $(ls clean | tr '\n' ' ')"
! grep -rhoF -f hidden clean || fail "hidden words are left"
! grep -rho 'SECRET[0-9]*' clean || fail "secrets are left"
python3 - <<'PY' || fail "what stays"
import json
was, now = ([json.loads(l) for l in open(run + "/events.jsonl")] for run in ("full", "clean"))
assert len(was) == len(now)
for a, b in zip(was, now):
    for key in ("event", "t_ns", "query", "span", "sent_ns", "first_event_ns", "output_tokens", "status", "outcome", "result_bytes"):
        assert a.get(key) == b.get(key), (key, a, b)
    for key in ("arrivals", "chunks", "usage", "messages_kept"):
        assert (a.get("data") or {}).get(key) == (b.get("data") or {}).get(key), key
PY
for what in text tools; do
    expect_exit 0 agent export full --format run --redact $what -o clean-$what
    damaged clean-$what
    # what names machines, errors and what scripts read goes in each mode
    ! grep -rhoE 'HIDDEN[0-9]*Y(\.example|\.sh)|(HTTP 500|resolve|/opt/|/root/|/data/) ?HIDDEN' clean-$what || fail "$what: addresses, paths or errors are left"
    assert_json clean-$what/manifest.json 'd["config"]["telemetry"] is None and d["hardware"]["host"] is None and d["redacted"] == "'$what'"'
done

step "a run that stores no texts"
expect_exit 0 agent run spy.lua --path . --path tools --dataset rows.jsonl --base-url "$BASE_URL" -o none --quiet --no-content
! grep -rho 'SECRET[0-9]*' none || fail "secrets are stored"
assert_json none/manifest.json 'd["config"]["no_content"]'
assert_json none/traces.jsonl 'len(d) == 10 and sum(t["is_resolved"] is not None for t in d) > 0'
expect_exit 0 agent replay none --mode workload --base-url "$BASE_URL" -o nagain
check_out "20 of 20 requests sent"
expect_exit 3 agent replay none --mode hermetic --agent spy.lua -o x
check_err "was run with --no-content"
expect_exit 0 agent export none --format mooncake -o none.jsonl
assert_json none.jsonl 'len(d) == 20 and all(r["input_length"] == 50 for r in d)'

step "wrong usage"
expect_exit 2 agent export record --format run -o x
expect_exit 2 agent export record --format run --redact al -o x
expect_exit 1 agent export record --format run --redact all -o shared

end_test
