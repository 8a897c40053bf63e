# Lengths of a workload: a run shared without its text gives prompts of its lengths again, and replies are
# as long as recorded where the server has a way (wordy.py: one word is one token), and it says where not.
. "$(dirname "$0")/lib.sh"

# start_wordy KIND: sets BASE_URL; requests are logged to $WORK/KIND.jsonl.
start_wordy() {
    mkfifo "$1.port" || fail "mkfifo"
    python3 "$IPW_SOURCE_DIR/tests/e2e/wordy.py" "$1" "$WORK/$1.jsonl" >"$1.port" &
    FAKES="$FAKES $!"
    read -r port <"$1.port"
    BASE_URL=http://127.0.0.1:$port/v1
}

step "a run"
cat >talk.lua <<'LUA'
local llm = require "ipw.llm"
return { name = "talk", run = function(query)
  local thread = { llm.system(("rule "):rep(700)), llm.user(query.prompt) }
  for k = 1, 3 do
    local reply = llm.chat { messages = thread, max_tokens = 10 * k }
    thread[#thread + 1] = reply.message
    thread[#thread + 1] = llm.user(("hush "):rep(100 * k))
  end
  return "42"
end }
LUA
printf '{"question":"One?","answer":"42"}\n{"question":"Two?","answer":"42"}\n' >rows.jsonl
start_wordy vllm
VLLM=$BASE_URL
expect_exit 0 agent run talk.lua --dataset rows.jsonl --base-url "$VLLM" --output record --quiet

step "shared without its text"
expect_exit 0 agent export record --format mooncake -o shared.jsonl
assert_lacks shared.jsonl hush
assert_json shared.jsonl '[r["input_length"] for r in d] == 2 * [701, 804, 1007] and [r["output_length"] for r in d] == 6 * [3]'

step "and sent again: prompts of those lengths, by the server's own count"
expect_exit 0 agent replay shared.jsonl --mode workload --schedule closed --base-url "$VLLM" -o again
check_out "6 of 6 requests sent, 6 of 6 replies as long as saved"
assert_json again/replay.json 'd["prompt_tokens_ratio"] == 1 and d["output_length_kept"] == d["output_length_known"] == 6 and d["forced_length"]'
assert_json vllm.jsonl '[r["prompt"] for r in d[-6:]] == 2 * [701, 804, 1007]'
# What was the same beginning then is one now: the first block of all, the others of the same query.
assert_json vllm.jsonl '(lambda w: all(x[:512] == w[0][:512] for x in w) and w[2][:512] == w[1][:512] and w[0][512:] != w[3][512:])([r["body"]["messages"][0]["content"].split() for r in d[-6:]])'
expect_exit 0 agent export again --format mooncake -o again.jsonl
python3 - <<'PY' || fail "the workload of the replay is another"
import json
def rows(name): return [json.loads(l) for l in open(name)]
a, b = rows("shared.jsonl"), rows("again.jsonl")
for key in ("input_length", "output_length", "session_id"):
    assert [r[key] for r in a] == [r[key] for r in b], key
# Beginnings that are shared stay shared.
def shared(r): return [[sum(p == q for p, q in zip(x["hash_ids"], y["hash_ids"])) for y in r] for x in r]
assert all(p <= q for x, y in zip(shared(a), shared(b)) for p, q in zip(x, y)), (shared(a), shared(b))
PY

step "forced lengths, server by server"
# Recorded replies are longer than any of them would be by itself.
sed 's/"output_length":3/"output_length":25/' shared.jsonl >long.jsonl
forced() { # NAME: it has a way
    expect_exit 0 agent replay long.jsonl --mode workload --schedule closed --base-url "$BASE_URL" -o "to-$1"
    check_out "6 of 6 replies as long as saved"
    no_err "at most, not exactly"
    assert_json "to-$1/replay.json" 'd["forced_length"] and d["output_length_kept"] == d["output_length_known"] == 6'
    assert_json "$1.jsonl" 'all(r["body"]["ignore_eos"] is True and r["body"]["max_tokens"] == r["body"]["min_tokens"] == 25 for r in d[-6:])'
    assert_json "to-$1/traces.jsonl" 'all(t["output_tokens"] == 25 for q in d for t in q["turns"])'
}
BASE_URL=$VLLM forced vllm
start_wordy sglang
forced sglang
start_wordy llamacpp
forced llamacpp

step "a server without a way is asked for at most that many, and the result says what came of it"
start_wordy ollama
expect_exit 0 agent replay long.jsonl --mode workload --schedule closed --base-url "$BASE_URL" -o to-ollama
check_err "replies can be shorter than the saved ones"
check_err "Ollama has no way to force the length of a reply"
check_out "0 of 6 replies as long as saved"
assert_json to-ollama/replay.json 'not d["forced_length"] and d["output_length_kept"] == 0 and d["output_length_known"] == 6'
assert_json ollama.jsonl 'all("ignore_eos" not in r["body"] and "min_tokens" not in r["body"] and r["body"]["max_tokens"] == 25 for r in d)'

step "one that does not do what it is asked to is told of too"
start_wordy any
expect_exit 0 agent replay long.jsonl --mode workload --schedule closed --base-url "$BASE_URL" -o to-any
check_out "0 of 6 replies as long as saved"
check_err "in place of the 25 that were forced"
assert_json to-any/replay.json 'd["forced_length"] and d["output_length_kept"] == 0'

step "and not at all when it is not wanted"
expect_exit 0 agent replay long.jsonl --mode workload --schedule closed --base-url "$VLLM" --no-force -o to-none
assert_json to-none/replay.json 'not d["forced_length"] and d["output_length_kept"] == 0'
assert_json vllm.jsonl 'all("ignore_eos" not in r["body"] for r in d[-6:])'
end_test
