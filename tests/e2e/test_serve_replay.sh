# A record as a server: a plain curl session gets what the record holds, event by event and never sooner
# than it came; the agent that made the record gets its own answers; what is not in it is told.
# Sanitizer: a record as a server.
. "$(dirname "$0")/lib.sh"

command -v curl >/dev/null || skip "curl is not installed"

cat >session.py <<'PY'
"""session.py bodies RUN [NAME N EDIT]...: recorded requests as bodies: N.json, and how long after it its
reply's last event came, in seconds: N.done; NAME.json is the N-th after EDIT, Python on `b`.
session.py same RUN [N FILE]...: what curl wrote to FILE (a stream, or a whole answer) is the N-th reply."""
import json, sys
what, run = sys.argv[1:3]
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
lines = [json.loads(l) for l in open(run + "/events.jsonl", encoding="utf-8")]
starts = [e for e in lines if e["event"] == "lm_inference_start"]
def end_of(start):
    return [e for e in lines if e["event"] == "lm_inference_end" and (e["query"], e["span"]) == (start["query"], start["span"])][0]
def body(n):
    messages, start = [], starts[n]
    for s in starts[:n + 1]:
        if s["query"] == start["query"]:
            messages = messages[:s["data"]["messages_kept"]] + s["data"]["messages"]
    return json.loads(json.dumps(dict(start["data"]["request"], messages=messages)))
def arrivals(end):
    t, entries, numbers, value, shift = 0, [], [], 0, 0
    for digit in map(DIGITS.index, end["data"]["arrivals"]):
        value, shift = value + ((digit & 31) << shift), shift + 5
        if digit < 32:
            numbers.append(value >> 1)
            value = shift = 0
    for dt, what in zip(numbers[::2], numbers[1::2]):
        t += dt
        entries.append((t, what & 7, what >> 3))
    return entries
def same(end, path):
    want = end["data"]
    got = {"text": "", "reasoning": "", "calls": [], "finish": None, "usage": None}
    raw = open(path, encoding="utf-8").read()
    if raw.startswith("{"):
        d = json.loads(raw)
        choice = d["choices"][0]
        m = choice["message"]
        got.update(text=m["content"] or "", reasoning=m.get("reasoning_content", ""), finish=choice["finish_reason"], usage=d["usage"])
        got["calls"] = [{"arguments": c["function"]["arguments"], "id": c["id"], "name": c["function"]["name"]} for c in m.get("tool_calls", [])]
        assert (d["id"], d["model"], d["object"]) == (want["id"], want["model"], "chat.completion"), d
    else:
        events = raw.split("\n\n")
        assert events[-1] == "" and events[-2] == "data: [DONE]", raw[-200:]
        pieces = []
        for event in events[:-2]:
            assert event.startswith("data: ") and "\n" not in event, event
            d = json.loads(event[6:])
            assert (d["id"], d["model"], d["object"]) == (want["id"], want["model"], "chat.completion.chunk"), d
            if d.get("usage"): got["usage"] = d["usage"]
            for choice in d["choices"]:
                delta = choice["delta"]
                if delta.get("content"): got["text"] += delta["content"]; pieces.append((1, len(delta["content"].encode())))
                if delta.get("reasoning_content"): got["reasoning"] += delta["reasoning_content"]; pieces.append((2, len(delta["reasoning_content"].encode())))
                for c in delta.get("tool_calls", []):
                    if "id" in c: got["calls"].append({"arguments": "", "id": c["id"], "name": c["function"]["name"]}); pieces.append((4, 1))
                    if c["function"]["arguments"]:
                        got["calls"][c["index"]]["arguments"] += c["function"]["arguments"]
                        pieces.append((3, len(c["function"]["arguments"].encode())))
                got["finish"] = choice["finish_reason"] or got["finish"]
        # the same events in the same order
        assert pieces == [(kind, n) for t, kind, n in arrivals(end) if kind], (pieces, arrivals(end))
    usage = want["usage"]
    assert got["usage"]["prompt_tokens"] == usage["prompt"] and got["usage"]["completion_tokens"] == usage["completion"], got
    for key in ("text", "reasoning", "calls", "finish"):
        assert got[key] == want[key], (key, got[key], want[key])
def write(name, b):
    with open("%s.json" % name, "w") as f: json.dump(b, f)
if what == "bodies":
    for n, start in enumerate(starts):
        write(n, body(n))
        end = end_of(start)
        if (end.get("data") or {}).get("arrivals"):
            open("%d.done" % n, "w").write(repr((end["first_event_ns"] - end["sent_ns"]) / 1e9 + arrivals(end)[-1][0] / 1e6))
    for name, n, edit in zip(sys.argv[3::3], sys.argv[4::3], sys.argv[5::3]):
        scope = {"b": body(int(n))}
        exec(edit, scope)
        write(name, scope["b"])
else:
    for n, path in zip(sys.argv[3::2], sys.argv[4::2]): same(end_of(starts[int(n)]), path)
PY
session() { python3 session.py "$@" || fail "session.py $*"; }

# ask NAME FILE: posts NAME.json; the answer goes to FILE, STATUS, CURL and SECONDS_TAKEN are set.
ask() {
    told=$(curl -sN --max-time 60 -D head -o "$2" -w '%{http_code} %{time_total}' -H 'Content-Type: application/json' \
        --data-binary "@$1.json" "$BASE_URL/chat/completions")
    CURL=$?
    STATUS=${told% *} SECONDS_TAKEN=${told#* }
}
not_sooner() { awk "BEGIN { exit !($SECONDS_TAKEN >= $1 - 0.001) }" || fail "$SECONDS_TAKEN s, recorded $1 s"; }

step "the record: reasoning, two calls, an answer in several languages; delays between all of them"
cat >words.txt <<'CASSETTE'
when "role":"tool"
always
itl 8
text Zwölf Bäume, 五棵樹 – and that is all. FINAL ANSWER: 42
usage 55 12
---
always
itl 12
delay 40
reasoning I have to think about it.
call calculator {"expression":"2+3"}
call calculator {"expression":"5*8"}
CASSETTE
start_fake --script words.txt
cat >asks.lua <<'LUA'
local llm, tools = require "ipw.llm", require "ipw.tools"
return { name = "asks", run = function(query)
  local kit <close> = tools.open { "calculator" }
  local thread = { llm.system "Say it.", llm.user(query.prompt) }
  local reply = llm.chat { messages = thread, tools = kit.schemas }
  thread[#thread + 1] = reply.message
  for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
  return llm.chat { messages = thread, tools = kit.schemas }.text
end }
LUA
printf '{"question":"Question %d?","answer":"42"}\n' 1 2 >rows.jsonl
expect_exit 0 agent run asks.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o record -q
stop_fake
assert_json record/traces.jsonl 'all(t["is_resolved"] for t in d) and [len(t["turns"]) for t in d] == [2, 2]'

expect_exit 0 agent replay record
check_out "~ I have to think about it." # reasoning is shown as well
expect_exit 0 agent replay record --follow
check_out "~ I have to think about it."
session bodies record \
    mine 0 'b["stream"] = False; del b["stream_options"]; b["model"] = "mine"; b["temperature"] = 0.5' \
    probs 0 'b["logprobs"] = True; b["stream"] = False; b.pop("stream_options", 0)' \
    order 1 'b = {k: b[k] for k in reversed(b)}; b["messages"] = [{k: m[k] for k in reversed(m)} for m in b["messages"]]' \
    result 1 'b["messages"][3]["content"] = "changed"' \
    byte 2 'b["messages"][1]["content"] = "Question 2!"' \
    longer 3 'b["messages"].append({"role": "user", "content": "And?"})' \
    wrong 0 'b["messages"] = 7' \
    whole0 0 'b["stream"] = False; b.pop("stream_options", 0)' \
    whole1 1 'b["stream"] = False; b.pop("stream_options", 0)'

step "a plain curl session"
start_serve --replay record
curl -s "$BASE_URL/models" >models
for n in 0 1 2 3; do
    ask $n stream$n
    assert_eq "$STATUS" 200
    assert_matches head "^X-Ipw-Recorded: query $((n / 2)), turn $((n % 2 + 1)), attempt 1, by request"
    not_sooner "$(cat $n.done)"
done

step "whole, by another name of the model, with other options"
ask mine whole
assert_eq "$STATUS" 200
assert_matches head "by messages"
not_sooner "$(cat 0.done)"

step "log probabilities that the record does not have are refused in words"
ask probs refused
assert_eq "$STATUS" 400
assert_contains refused 'logprobs: the saved reply has none'

step "keys in another order, characters as escapes: the same request"
ask order ordered
assert_matches head "turn 2, attempt 1, by request"

step "another result of a tool: another request, whose first other message is named"
ask result none
assert_eq "$STATUS" 404
assert_contains none '"turn":2},"param":"messages['

step "text, reasoning, calls, ids, usage, finish reason and the events themselves are the record's"
session same record 0 stream0 1 stream1 2 stream2 3 stream3 0 whole 1 ordered
assert_json models '[m["id"] for m in d["data"]] == ["fake-model"]'

step "not in the record: which turn is nearest, and where it differs"
ask byte none
assert_eq "$STATUS" 404
assert_contains none '"code":"not_recorded"'
assert_contains none '"nearest":{"message":1,"query_id":"q0001","query_index":1,"turn":1},"param":"messages[1]"'
assert_contains none 'message 2 (user) of the request differs at messages[1].content, byte 11'
ask longer none
assert_contains none '"query_index":1,"turn":2}'
assert_contains none 'message 6 (user) of the request is not in the saved run'
ask wrong none
assert_eq "$STATUS" 400

step "the agent against its own record: the same answers; and a question more"
printf '{"question":"Question %d?","answer":"42"}\n' 1 2 9 >more.jsonl
expect_exit 0 agent run asks.lua --dataset more.jsonl --base-url "$BASE_URL" --model fake-model -o again -q --max-retries 0
python3 - <<'PY' || fail "another run"
import json, trace_lines
a, b = ([trace_lines.loads(l) for l in open(run + "/traces.jsonl")] for run in ("record", "again"))
a, b = ({q["query_index"]: q for q in run} for run in (a, b))
for i, was in a.items():
    now = b[i]
    for key in ("response_text", "answer", "is_resolved", "num_turns", "total_input_tokens", "total_output_tokens", "tool_call_count"):
        assert now[key] == was[key], (key, now[key], was[key])
    for x, y in zip(was["turns"], now["turns"]):
        assert (x["finish_reason"], x["model"], x["tools_called"]) == (y["finish_reason"], y["model"], y["tools_called"])
assert not b[2]["completed"] and "404" in b[2]["error"] and "the saved run has no reply to this request" in b[2]["error"], b[2]["error"]
PY
stop_serve
assert_contains serve.err "are not in the saved run"

step "scaled, and at once"
python3 - <<'PY'
import json, shutil
shutil.copytree("record", "slow")
lines = [json.loads(l) for l in open("record/events.jsonl")]
for e in lines:
    if e["event"] == "lm_inference_end": e["sent_ns"] -= 400 * 10**9
open("slow/events.jsonl", "w").write("".join(json.dumps(e, sort_keys=True, separators=(",", ":")) + "\n" for e in lines))
PY
damaged slow
start_serve --replay slow --speed 1000
ask 0 slow1000
not_sooner 0.4
stop_serve
for speed in max 0; do
    start_serve --replay slow --speed $speed
    ask 0 slow$speed
    stop_serve
done
session same record 0 slow1000 0 slowmax 0 slow0

step "others are served while one waits"
start_serve --replay slow
curl -sN --max-time 60 -D waits-head -o waits --data-binary @0.json "$BASE_URL/chat/completions" &
WAITS=$!
tries=0
until [ -s waits-head ]; do # its answer has begun; the rest comes in 400 s
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "no answer began"
    sleep 0.05
done
curl -s --max-time 60 "$BASE_URL/models" >models || fail "the server waits"
kill $WAITS && wait $WAITS
stop_serve

step "a record without arrivals: as many events, the first and the last in their time"
damaged old
python3 - <<'PY'
import json, shutil
shutil.copytree("record", "old")
lines = [json.loads(l) for l in open("record/events.jsonl")]
for e in lines:
    if e["event"] == "lm_inference_end": del e["data"]["arrivals"]
open("old/events.jsonl", "w").write("".join(json.dumps(e, sort_keys=True, separators=(",", ":")) + "\n" for e in lines))
PY
start_serve --replay old
for n in 0 1; do
    ask whole$n old-whole$n
    ask $n old-stream
    assert_eq "$(tail -n 2 old-stream | head -n 1)" "data: [DONE]"
done
session same record 0 old-whole0 1 old-whole1
[ "$(grep -c '"content":"[^"]' old-stream)" -gt 5 ] || fail "too few events"
stop_serve

step "equal requests: the replies in order, then the last again; failures only when asked for"
cat >fails.txt <<'CASSETTE'
status 429 Slow down
header retry-after-ms: 1
json {"error":{"message":"too many of them"}}
---
text first FINAL ANSWER: 1
---
text second FINAL ANSWER: 42
---
text half of
cut
---
status 400 Bad Request
json {"error":{"message":"not this one"}}
CASSETTE
start_fake --script fails.txt
printf '{"id":"%s","question":"Same?","answer":"42"}\n' a b c d >same.jsonl
expect_exit 0 agent run single --dataset same.jsonl --base-url "$BASE_URL" --model fake-model -o same -q --concurrency 1
stop_fake
session bodies same whole 0 'b["stream"] = False; b.pop("stream_options", 0)'
start_serve --replay same
for word in first second second; do
    ask whole whole
    assert_contains whole "$word"
done
stop_serve
start_serve --replay same --with-failures
ask whole whole
assert_eq "$STATUS" 429
assert_contains whole "too many of them"
ask whole whole
assert_contains whole first
ask 0 stream
assert_contains stream '"second "'
ask 0 stream
assert_eq "$CURL" 18 "(curl: the transfer ended too soon)"
assert_contains stream '"half "'
assert_lacks stream DONE
ask whole whole
assert_eq "$STATUS" 400
assert_contains whole "not this one"
stop_serve

step "a record without its texts"
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o bare -q --no-content
stop_fake
expect_exit 3 agent serve --port 0 --replay bare
check_err "bare: was run with --no-content, so its texts are filler"
one_message
expect_exit 0 agent export record --format run --redact text -o shared
assert_json shared/manifest.json 'd["redacted"] == "text"'
expect_exit 3 agent serve --port 0 --replay shared
check_err "shared: was exported with --redact"
expect_exit 3 agent replay shared --mode hermetic --agent asks.lua -o x
check_err "shared: was exported with --redact text"
start_serve --replay shared --filler
expect_exit 0 agent replay shared --mode workload --base-url "$BASE_URL" --no-force -o sent
check_out "4 of 4 requests sent"
stop_serve
assert_contains serve.err " 0 are not in the saved run"
session bodies shared
start_serve --replay shared --filler --speed max
ask 3 stream
session same shared 3 stream
stop_serve

step "wrong usage"
expect_exit 2 agent serve --replay record --model demo
check_err "--model goes not with --replay"
expect_exit 2 agent serve --speed 2
check_err "--speed goes with --replay"
expect_exit 2 agent serve --replay record --speed fast
check_err "expected a number"
expect_exit 3 agent serve --replay nowhere
check_err "nowhere: no such run"
expect_exit 2 agent serve --replay record --host 0.0.0.0
check_err "only loopback addresses"
cp -r record cut
damaged cut
sed -i '2s/^..../####/' cut/events.jsonl
expect_exit 3 agent serve --replay cut
check_err "cut/events.jsonl:2: "

end_test
