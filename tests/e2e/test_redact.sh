# A run that is shared without what was said in it: none of 50 planted secrets is left, and it can still
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

step "a run that stores no texts"
expect_exit 0 agent run spy.lua --path . --path tools --dataset rows.jsonl --base-url "$BASE_URL" -o none --quiet --no-content
! grep -rho 'SECRET[0-9]*' none || fail "secrets are stored"
assert_json none/manifest.json 'd["config"]["no_content"]'
assert_json none/traces.jsonl 'len(d) == 10 and sum(t["is_resolved"] is not None for t in d) > 0'
expect_exit 0 agent replay none --mode workload --base-url "$BASE_URL" -o nagain
check_out "20 of 20 requests sent"
expect_exit 3 agent replay none --mode hermetic --agent spy.lua -o x
check_err "was recorded with --no-content"
expect_exit 0 agent export none --format mooncake -o none.jsonl
assert_json none.jsonl 'len(d) == 20 and all(r["input_length"] == 50 for r in d)'

step "wrong usage"
expect_exit 2 agent export record --format run -o x
expect_exit 2 agent export record --format run --redact al -o x
expect_exit 1 agent export record --format run --redact all -o shared

end_test
