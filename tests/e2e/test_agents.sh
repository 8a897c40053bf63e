# The bundled agents against a model that misbehaves on purpose: `serve` runs it, from Lua.
. "$(dirname "$0")/lib.sh"

cat >model.lua <<'LUA'
-- What it says follows from the question's first word and the turn; it answers with what it saw.
local function last(messages) return messages[#messages].content end
local function turn_of(messages)
  local n = 1
  for _, m in ipairs(messages) do if m.role == "assistant" then n = n + 1 end end
  return n
end
local function text(t, finish) return { text = t, finish = finish } end
local function call(...) return { calls = { ... } } end
local ACT = 'Thought: t\nAction: calculator\nAction Input: {"expression": "6 * 7"}'
local plays = {
  prose_once = function(m)
    local hint = last(m)
    if turn_of(m) == 1 then return text("It is surely 42.") end
    if not hint:find("It is surely 42.", 1, true) then return text("Final Answer: no quote") end
    if not hint:find("Action Input:", 1, true) then return text("Final Answer: no format") end
    return text("Final Answer: hinted")
  end,
  prose_ever = function() return text("I ramble.") end,
  late = function(m)
    return last(m):find("last step", 1, true) and text("Final Answer: late") or text(ACT)
  end,
  late_prose = function(m)
    return last(m):find("last step", 1, true) and text("plainly 7") or text(ACT)
  end,
  never = function() return text(ACT) end,
  invents = function(m)
    if turn_of(m) == 1 then return text(ACT .. "\nObserVation: 5\nFinal Answer: 5") end
    local before = m[#m - 1].content
    if before:lower():find("observation") then return text("Final Answer: kept") end
    return text("Final Answer: " .. last(m):match("^Observation: (.*)$"))
  end,
  unknown = function(m)
    if turn_of(m) == 1 then return text("Action: search\nAction Input: {}") end
    return text("Final Answer: " .. (last(m):find("no tool 'search'", 1, true) and "told" or "mute"))
  end,
  long = function(m)
    if turn_of(m) == 1 then
      return text('Action: python\nAction Input: {"code": "print(\'x\' * 30000)"}')
    end
    local seen = last(m)
    local bounded = #seen < 8200 and seen:find("left out", 1, true)
    return text("Final Answer: " .. (bounded and "True" or "False"))
  end,
  pair = function(m)
    if turn_of(m) == 1 then
      return text(ACT .. '\nAction: calculator\nAction Input: {"expression": "1 + 1"}')
    end
    local a, b = last(m):match("^Observation %(calculator%): (%d+)\n\nObservation %(calculator%): (%d+)$")
    return text(("Final Answer: %s, %s"):format(a, b))
  end,

  -- native
  bad_arguments = function(m)
    if turn_of(m) == 1 then return call({ name = "calculator", arguments = "{broken" }) end
    local sent = m[#m - 1].tool_calls[1]["function"].arguments
    return text(sent .. (last(m):find("^error: ") and " told" or " mute"))
  end,
  -- What a strict server would refuse for ever: no object, half a character, no name.
  odd_calls = function(m)
    if turn_of(m) == 1 then
      return call({ name = "calculator", arguments = "[1]" },
        { name = "calculator", arguments = '{"expression":"\\ud800"}' }, { name = "", arguments = "{}" })
    end
    local sent = {}
    for i, c in ipairs(m[#m - 3].tool_calls) do
      sent[i] = c["function"].name .. c["function"].arguments
    end
    return text(table.concat(sent, " "))
  end,
  empty_once = function(m, r)
    if last(m):find("Your reply was empty", 1, true) then return text("filled") end
    return text("")
  end,
  empty_ever = function() return text("") end,
  cut_once = function(m)
    return last(m):find("cut off", 1, true) and text("short") or text("long and", "length")
  end,
  together = function(m)
    if turn_of(m) == 1 then
      return call({ name = "calculator", arguments = { expression = "2 + 3" } },
        { name = "calculator", arguments = { expression = "4 + 5" } })
    end
    return text(m[#m - 1].content .. ", " .. last(m))
  end,
  calls_ever = function(m, r)
    if not r.tools then return text(last(m):find("last step", 1, true) and "tool-less" or "odd") end
    return call({ name = "calculator", arguments = { expression = "1" } })
  end,
  final_tool = function() return call({ name = "final_answer", arguments = { answer = "ended" } }) end,
  no_parser = function() return text('<tool_call>{"name": "calculator"}</tool_call>') end,
}
return { name = "actor", reply = function(request)
  local question
  for _, m in ipairs(request.messages) do
    if m.role == "user" then question = m.content break end
  end
  for word, play in pairs(plays) do
    if question:find("play " .. word .. "$") or question:find("play " .. word .. "\n") then
      return play(request.messages, request)
    end
  end
  return text("unknown play")
end }
LUA

mkfifo url || fail "mkfifo"
"$IPW_AGENT" serve --port 0 --model model.lua --exit-with-parent >url 2>serve.err &
FAKES="$FAKES $!"
read -r word BASE_URL <url || fail "serve did not start: $(cat serve.err)"
assert_eq "$word" listening

# plays AGENT "extra options" PLAY=ANSWER...: runs them as one dataset and compares each response;
# PLAY:REASON stands for one that must fail with that reason.
plays() {
    agent=$1 options=$2
    shift 2
    : >tasks.jsonl
    for pair in "$@"; do
        printf '{"id": "%s", "question": "play %s", "answer": "x"}\n' "${pair%%[=:]*}" \
            "${pair%%[=:]*}" >>tasks.jsonl
    done
    rm -rf run
    # shellcheck disable=SC2086
    expect_exit 0 agent run "$agent" --dataset tasks.jsonl --base-url "$BASE_URL" \
        --model actor --output run --quiet $options
    for pair in "$@"; do
        name=${pair%%[=:]*}
        step "$agent $name"
        case $pair in
        *=*) want="t['response_text'] == '${pair#*=}' and t['outcome'] == 'answered'" ;;
        *) want="'${pair#*:}' in t['outcome'] and t['response_text'] in (None, '')" ;;
        esac
        assert_json run/traces.jsonl "[$want for t in d if t['query_id'] == '$name'] == [True]"
    done
}

step "text"
plays react "--max-turns 4" prose_once=hinted prose_ever:malformed late=late \
    "late_prose=plainly 7" never:max_turns invents=42 unknown=told "long=True" "pair=42, 2"
assert_json run/traces.jsonl "[t['n_malformed'] for t in d if t['query_id'] == 'prose_ever'] == [3]"
assert_json run/traces.jsonl "[t['num_turns'] for t in d if t['query_id'] == 'prose_ever'] == [3]"
assert_json run/traces.jsonl "[t['num_turns'] for t in d if t['query_id'] == 'late'] == [4]"

step "screens say in words that a reply did not follow the agent's format"
told="the reply did not follow the agent's format"
expect_exit 0 agent replay run --query prose_ever
check_out "prose_ever  $told"
expect_exit 0 agent replay run --follow
check_out "$told"
expect_exit 0 agent report run
if grep -q malformed "$WORK/out"; then fail "report has the word of the files"; fi
expect_exit 0 agent report run -o page.html
grep -q "$told" page.html || fail "the page does not say it in words"

step "native"
plays tools "--max-turns 4" "bad_arguments={} told" \
    'odd_calls=calculator{} calculator{"expression":"�"} unknown{}' empty_once=filled empty_ever:empty \
    cut_once=short "together=5, 9" calls_ever=tool-less "no_parser:no tool parser"
plays tools "--tools final_answer" final_tool=ended

step "a number is an answer, by itself and in a table"
start_fake --bench 1
echo '{"question":"What is 40 + 2?","answer":"42"}' >sum.jsonl
for returned in '42' '{ answer = 42 }' '{ answer = 42, source = "tool" }'; do
    echo "return { run = function() return $returned end }" >number.lua
    rm -rf number
    expect_exit 0 agent run number.lua --dataset sum.jsonl --base-url "$BASE_URL" --model m --output number -q
    assert_json number/traces.jsonl 'd[0]["outcome"] == "answered" and d[0]["response_text"] == "42" and d[0]["is_resolved"]'
done

step "a tool of the agent's own choice that the run does not grant is left out, and that is said once"
expect_exit 0 agent run react --dataset gaia-sample --limit 3 --model demo --no-proc --output without
assert_eq "$(grep -c "goes without the tool 'python': child processes are switched off by --no-proc" err)" 1
assert_json without/traces.jsonl 'all(q["completed"] for q in d)'
grep -q '"python' without/events.jsonl && fail "a request offers the tool"
expect_exit 0 agent replay without --mode hermetic
expect_exit 1 agent run react --dataset gaia-sample --limit 1 --model demo --no-proc --tools python --output named
check_err "tool 'python' needs 'proc': child processes are switched off by --no-proc"

end_test
