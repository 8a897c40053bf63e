# A hermetic replay of what reaches for the web: an agent's own requests are answered by the record;
# a tool in a file of its own does not run, whatever it did (requests, spans, notes, a model asked, a
# tool inside, bytes that are no text); and no socket is opened.
. "$(dirname "$0")/lib.sh"

cat >lookup.lua <<'LUA'
local ipw, http, llm, tools = require "ipw", require "ipw.http", require "ipw.llm", require "ipw.tools"
return { name = "lookup", about = "Looks up.", input = { { "url", "string", "Where." } }, needs = { "http" },
  run = function(args)
    local page, why = http.get(args.url)
    if not page then return nil, why end
    ipw.note("seen", { n = #page.body })
    local kit <close> = tools.open { "calculator" }
    return ipw.event("think", function()
      local said = llm.chat { messages = { llm.user(page.body) } }.text
      return said .. kit:invoke("calculator", { expression = "1 + 1" }) .. " \0 \xff " .. page.body
    end)
  end }
LUA
cat >web.lua <<'LUA'
local ipw, http, llm, tools = require "ipw", require "ipw.http", require "ipw.llm", require "ipw.tools"
local SITE = "SITE_URL"
return { name = "web", defaults = { max_turns = 4, tools = { "./lookup.lua" } },
  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    local parts = { query.prompt }
    local function say(page, why, word)
      if not page then parts[#parts + 1] = tostring(why) .. tostring(word) return end
      local names = {}
      for name, value in pairs(page.headers) do names[#names + 1] = name .. "=" .. value end
      table.sort(names)
      parts[#parts + 1] = table.concat({ page.status, page.url, tostring(page.type), page.body, table.unpack(names) }, ";")
    end
    say(http.get(SITE .. "/page?q=1"))
    say(http.get((SITE:gsub("://", "://user:secret@")) .. "/hop"))
    say(http.post(SITE .. "/echo", "\0\xfe\xff"))
    say(http.get(SITE .. "/missing"))
    say(http.get(SITE .. "/big", { max_bytes = "1K" }))
    say(http.get("http://10.0.0.1/"))
    say(http.get("gopher://x"))
    parts[3] = parts[3]:gsub("[\0-\x1f\x7f-\xff]", function(c) return ("<%d>"):format(c:byte()) end)
    -- Two at once: what the tools do inside does not shift the numbers of the others.
    ipw.map({ "/page", "/json" }, function(path)
      parts[#parts + 1] = path .. kit:invoke("lookup", { url = SITE .. path })
      local span <close> = ipw.event("after")
    end)
    table.sort(parts)
    local thread = { llm.user(table.concat(parts, "\n")) }
    for _ = 1, cfg.max_turns do
      local reply = llm.chat { messages = thread, tools = kit.schemas }
      thread[#thread + 1] = reply.message
      if #reply.calls == 0 then return reply.text end
      for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
    end
    return nil, "max_turns"
  end }
LUA
mkfifo port
python3 "$IPW_SOURCE_DIR/tests/e2e/web.py" "$WORK/site.log" >port 2>site.err &
SITE_PID=$!
FAKES="$FAKES $SITE_PID"
read -r PORT <port
sed -i "s|SITE_URL|http://127.0.0.1:$PORT|" web.lua
cat >web.llm <<LLM
when 10.0.0.1
call lookup {"url": "http://127.0.0.1:$PORT/page"}
---
always
text it is so
LLM
printf '{"question":"one","answer":"it is so"}\n{"question":"two","answer":"it is so"}\n' >q.jsonl

step "the record"
start_fake --script web.llm
expect_exit 0 agent run web.lua --dataset q.jsonl --model m --base-url "$BASE_URL" --concurrency 2 \
    --web-allow "127.0.0.1:$PORT" -o web -q
stop_fake
kill $SITE_PID && wait $SITE_PID 2>/dev/null
FAKES=
assert_json web/traces.jsonl 'all(t["outcome"] == "answered" for t in d)'
assert_json web/events.jsonl 'sum(e["event"] == "span_end" and e["span"] >= 1048576 for e in d) >= 8'
assert_json web/events.jsonl 'any("body_hex" in (e.get("data") or {}) for e in d)'
assert_json web/events.jsonl 'all("�" in e["data"]["content"] for e in d if e["event"] == "tool_call_end" and e["name"] == "lookup")'
assert_lacks web/events.jsonl user:secret

step "answered by it"
trace=
command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null &&
    [ -z "${IPW_SANITIZE-}" ] && trace="strace -f -qq -o calls -e trace=network,process"
expect_exit 0 $trace "${IPW_CONFINED:-$IPW_AGENT}" replay web --mode hermetic --agent web.lua --tools ./lookup.lua -o again
check_out "identical to the saved run"
cmp web/events.jsonl again/events.jsonl || fail "events differ"
cmp web/traces.jsonl again/traces.jsonl || fail "traces differ"
if [ -n "$trace" ]; then
    grep -vE 'CLONE_THREAD|^[0-9]* *(---|[+][+][+])|exit|wait' calls | tail -n +2 >others
    [ ! -s others ] || fail "calls: $(head -3 others)"
fi

step "one query of it, and another page"
expect_exit 0 agent replay web --mode hermetic --agent web.lua --tools ./lookup.lua --query q0001 -o one
assert_json one/events.jsonl 'sum(e["event"] == "span_end" and e["kind"] == "http" for e in d) >= 9'
sed '/"span_end"/s/"body":"café"/"body":"thé!"/' web/events.jsonl >edited
cp edited web/events.jsonl
rm -rf again
expect_exit 4 agent replay web --mode hermetic --agent web.lua --tools ./lookup.lua -o again
check_err "turn 1: message 1 (user) of the request differs"
check_err "th<195><169>!"

end_test
