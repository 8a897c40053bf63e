# The tool web_search: four engines in their documented shapes, a folder of texts, faults, keys, replay.
. "$(dirname "$0")/lib.sh"

unset SEARXNG_URL BRAVE_API_KEY TAVILY_API_KEY SERPER_API_KEY
mkfifo port
python3 "$IPW_SOURCE_DIR/tests/e2e/search_engines.py" "$WORK/asked.log" >port &
FAKES="$FAKES $!"
read -r PORT <port
export BRAVE_API_KEY=canary-brave TAVILY_API_KEY=canary-tavily SERPER_API_KEY=canary-serper

step "each engine"
cat >suite.lua <<'LUA'
local test = require "ipw.test"
local search = test.tool "web_search"
local function refused(query, pattern)
  local text, ok = search { query = query }
  test.equal(ok, false, text)
  test.matches(text, pattern)
end
return {
  { "hits", function()
    test.equal(search { query = "two words & more" }, "1. One title\n   https://example.org/1?a=b&c\n" ..
      "   First text & more\n2. Two\n   https://example.org/2\n   " .. ("x"):rep(499) .. "\u{2026}")
    test.matches(search { query = "one", count = 1 }, "^1%. [^\n]+\n[^\n]+\n[^\n]+$")
    test.matches(search { query = "none" }, "^No results %(%a+%)%.$")
  end },
  { "faults", function()
    refused("denied", "HTTP 403: ")
    refused("junk", "is not JSON")
    test.matches(search { query = "odd" }, "^No results")
    refused(" ", "no words")
    test.matches(search { query = "busy" }, "^1%. One title")
  end },
}
LUA
for engine in searxng brave tavily serper; do
    expect_exit 0 agent test suite.lua --search "$engine=http://127.0.0.1:$PORT/$engine"
    check_out "2 passed, 0 failed"
done
assert_contains asked.log 'GET /searxng/search key=None {"format": "json", "q": "two words & more"}'
assert_contains asked.log 'GET /brave key=canary-brave {"count": "8", "q": "two words & more"}'
assert_contains asked.log 'POST /tavily key=Bearer canary-tavily {"max_results": 8, "query": "two words & more", "search_depth": "basic"}'
assert_contains asked.log 'POST /serper key=canary-serper {"num": 8, "q": "two words & more"}'

step "a folder"
mkdir -p texts/more
echo "The otter lives at the river." >texts/otter.txt
echo "A train leaves at noon." >texts/more/train.md
unset BRAVE_API_KEY TAVILY_API_KEY SERPER_API_KEY
expect_exit 0 agent tool web_search '{"query":"otters"}' --search ./texts --no-web
check_out "1. otter.txt"
expect_exit 0 agent tool web_search '{"query":"zebra"}' --search texts
check_out "No results (folder)."

step "wrong use"
expect_exit 3 agent tool web_search '{"query":"x"}'
check_err "no search engine is named: set SEARXNG_URL"
expect_exit 2 agent tool web_search '{"query":"x"}' --search brave
check_err "BRAVE_API_KEY is not set"
expect_exit 2 agent tool web_search '{"query":"x"}' --search google
check_err "unknown engine 'google'"
expect_exit 3 agent tool web_search '{"query":"x"}' --search ./no-folder
check_err "there is no such folder"
expect_exit 2 agent tool web_search '{"query":"x"}' --search searxng=httpfoo://127.0.0.1:1
check_err "--search: 'httpfoo://127.0.0.1:1/search' is no address of a server"
SEARXNG_URL=gopher://x expect_exit 2 agent tool web_search '{"query":"x"}'
check_err "is no address of a server"

step "a run with a key, and its replay without"
printf '{"question":"look","answer":"done"}\n' >one.jsonl
cat >search.llm <<'LLM'
call web_search {"query": "one", "count": 1}
---
text done
LLM
start_fake --script search.llm
BRAVE_API_KEY=canary-brave expect_exit 0 agent run tools --tools web_search --search "brave=http://127.0.0.1:$PORT/brave" \
    --dataset one.jsonl --model m --base-url "$BASE_URL" -o run -q
stop_fake
assert_json run/manifest.json 'd["config"]["search"] == "brave"'
assert_json run/events.jsonl 'any(e["event"] == "tool_call_end" and "One title" in e["data"]["content"] for e in d)'
! grep -rq canary-brave run || fail "the key is in the run"
stop_all
expect_exit 0 agent replay run --mode hermetic -o again
cmp run/events.jsonl again/events.jsonl || fail "events differ"

end_test
