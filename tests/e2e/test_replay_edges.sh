# Replays of records that somebody changed: what the difference is called, and what a replay refuses.
# Sanitizer: records that somebody changed.
. "$(dirname "$0")/lib.sh"

printf '{"question":"One?","answer":"42"}\n{"question":"Two?","answer":"42"}\n' >rows.jsonl
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -q --output run

cat >change.py <<'EOF'
"""change.py OUT FILE PYTHON: a copy of run with `d`, the list of FILE's lines or its document, changed by PYTHON."""
import json, shutil, sys
out, name, code = sys.argv[1:4]
shutil.rmtree(out, True)
shutil.copytree("run", out)
text = open(f"{out}/{name}").read()
lines = name.endswith(".jsonl")
d = [json.loads(l) for l in text.split("\n")[:-1]] if lines else json.loads(text)
def first(event): return next(e for e in d if e.get("event") == event)
exec(code)
dump = lambda v: json.dumps(v, sort_keys=True, separators=(",", ":"))
open(f"{out}/{name}", "w").write("".join(dump(e) + "\n" for e in d) if lines else dump(d))
EOF
change() { python3 change.py "$@" || fail "change.py"; damaged "$1"; }
again=0
replay() { # CODE RUN ARGS...: into a folder of its own
    again=$((again + 1))
    code=$1
    shift
    expect_exit "$code" agent replay "$@" --output again$again
    damaged again$again
}

step "an end that differs is named: answer, outcome, error"
change answer events.jsonl 'first("query_end")["data"]["response"] = "43"'
replay 4 answer --mode hermetic
match_err "answer differs|query_end"
change outcome events.jsonl 'first("query_end")["outcome"] = "no_answer"'
replay 4 outcome --mode hermetic
check_err "the outcome differs"
change error events.jsonl 'first("query_end")["error"] = "boom"'
replay 4 error --mode hermetic
match_err "error differs|query_end"
change gone events.jsonl 'first("query_end")["data"] = {}'
replay 4 gone --mode hermetic

step "a request, a reply's calls, a tool's arguments, its result, its name"
change message events.jsonl 'first("lm_inference_start")["data"]["messages"][-1]["content"] = "Another?"'
replay 4 message --mode hermetic
check_err "the request differs"
change seed events.jsonl 'first("lm_inference_start")["data"]["request"]["seed"] = 5'
replay 4 seed --mode hermetic
check_err "request"
change few events.jsonl 'first("lm_inference_start")["data"]["messages"].pop()'
replay 4 few --mode hermetic
change more events.jsonl 'm = first("lm_inference_start")["data"]["messages"]; m.append(m[-1])'
replay 4 more --mode hermetic
change tool events.jsonl 'first("tool_call_start")["name"] = "calculate"'
replay 4 tool --mode hermetic
change arguments events.jsonl 'first("tool_call_start")["data"]["arguments"] = "{}"'
replay 4 arguments --mode hermetic
change result events.jsonl 'first("tool_call_end")["data"]["content"] = "999"'
replay 4 result --mode hermetic
change result events.jsonl 'first("tool_call_end")["data"]["content"] = "999"'
replay 4 result --mode tools
change calls events.jsonl 'first("lm_inference_end")["data"]["calls"][0]["name"] = "no_such_tool"'
replay 4 calls --mode hermetic
for outcome in timeout refused reset http_error server_error bad_reply too_large cancelled; do
    change "as-$outcome" events.jsonl "e = first('lm_inference_end'); e['outcome'] = '$outcome'; e['error'] = 'said'; e['will_retry'] = False"
    replay 4 "as-$outcome" --mode hermetic
    [ $outcome = cancelled ] || replay 4 "as-$outcome" --mode tools
done
replay 0 as-cancelled --mode tools # the query ends there, in the record too

step "the answers of a dataset score what went another way"
replay 4 result --mode tools --dataset rows.jsonl
replay 0 run --mode tools --dataset rows.jsonl
python3 - >many.jsonl <<'PY'
import json
own = {700: "q0001", 1900: "q0000"}
for i in range(2000):
    print(json.dumps({"id": own.get(i, "q000%d-%d" % (i % 2, i)), "question": "?", "answer": "of line %d" % i}))
PY
replay 0 run --mode tools --dataset many.jsonl
assert_json again$again/traces.jsonl '{q["query_id"]: q["reference_answer"] for q in d} == {"q0000": "of line 1900", "q0001": "of line 700"}'
sed -i 's/"q0001"/"another"/' many.jsonl
replay 0 run --mode tools --dataset many.jsonl
assert_json again$again/traces.jsonl '{q["query_id"]: q.get("reference_answer") for q in d} == {"q0000": "of line 1900", "q0001": None}'
replay 0 run --mode hermetic --query q0001
check_out "1 query"
replay 4 message --mode hermetic --query q0000
replay 0 message --mode hermetic --query q0001

step "going on against a server where the record ends"
replay 4 message --mode hermetic --from-divergence live --base-url "$BASE_URL" --model fake-model
match_err "goes on|differs|live"
replay 4 result --mode hermetic --from-divergence fail
OPENAI_API_KEY=sk-canary-123456 replay 4 calls --mode hermetic --from-divergence live --base-url "$BASE_URL"
if grep -rq canary again$again; then fail "the key was written down"; fi

step "agents and tools: its own, another, one that has changed, one that nobody has"
cat >mine.lua <<'EOF'
local llm = require "ipw.llm"
return { name = "mine", run = function(q) return llm.chat { messages = llm.thread(nil, q.prompt) }.text end }
EOF
expect_exit 0 agent run ./mine.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -q --output own
expect_exit 2 agent replay own --mode hermetic --output never
check_err "--agent"
replay 0 own --mode hermetic --agent mine.lua
echo "-- changed" >>mine.lua
replay 0 own --mode hermetic --agent mine.lua
check_err "mine.lua"
replay 4 run --mode hermetic --agent mine.lua
replay 0 run --mode hermetic --agent "$IPW_SOURCE_DIR/agents/tools.lua"
replay 4 run --mode hermetic --tools read_file
echo 'error "at load"' >broken.lua
replay 3 run --mode hermetic --agent broken.lua

step "a manifest that names odd things is not believed"
change list manifest.json 'd["config"]["tools"] = ["calculator"]'
replay 4 list --mode hermetic
change path manifest.json 'd["config"]["tools"] = ["../evil"]'
expect_exit 2 agent replay path --mode hermetic --output never
check_err "../evil"
change hash manifest.json 'd["config"]["agent_sha256"] = "0" * 64'
replay 0 hash --mode hermetic
change body manifest.json 'd["config"]["body"] = "{\"top_k\":5}"'
replay 4 body --mode hermetic
check_err "top_k"
change plain manifest.json 'del d["config"]["agent_file"]'
expect_exit 2 agent replay plain --mode hermetic --output never
change config manifest.json 'del d["config"]'
expect_exit 2 agent replay config --mode hermetic --output never
change texts events.jsonl '[e.pop("data", None) for e in d]'
replay 4 texts --mode hermetic

step "stopped in the middle: the new record says so"
cat >long.lua <<'EOF'
local ipw = require "ipw"
return { name = "long", run = function() ipw.sleep(0.01) ipw.note("on") return "42" end }
EOF
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "{\"question\":\"%d?\",\"answer\":\"42\"}\n", i }' >many.jsonl
expect_exit 0 agent run ./long.lua --dataset many.jsonl --base-url "$BASE_URL" --model fake-model -q --output many --concurrency 500 --sync off
for signal in INT TERM; do
    "$IPW_AGENT" replay many --mode hermetic --agent long.lua --output stopped$signal >out 2>err &
    pid=$!
    await_lines stopped$signal/events.jsonl
    kill -$signal $pid
    wait $pid
    code=$?
    case $code in 130 | 143 | 0) ;; *) fail "exit code $code after $signal" ;; esac
    damaged stopped$signal
done

end_test
