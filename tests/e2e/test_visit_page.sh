# The tool visit_page on awkward pages; its parts, its files, its guard, its replay.
# Sanitizer: awkward pages.
. "$(dirname "$0")/lib.sh"

mkfifo port
python3 "$IPW_SOURCE_DIR/tests/e2e/awkward_pages.py" >port &
FAKES="$FAKES $!"
read -r PORT <port
cat >suite.lua <<EOF2
local test, fs = require "ipw.test", require "ipw.fs"
local visit = test.tool "visit_page"
local site = "http://127.0.0.1:$PORT"
local function page(path, want, args)
  return { path, function()
    args = args or {}
    args.url = site .. path
    local text, ok = visit(args)
    test.equal(ok, true, text)
    test.equal((text:gsub("^[^\n]-" .. site:gsub("[%.%-]", "%%%0") .. "[^\n]*\n\n", "")), want)
  end }
end
local function refused(path, pattern)
  return { path, function()
    local text, ok = visit { url = path:find "^/" and site .. path or path }
    test.equal(ok, false, text)
    test.matches(text, pattern)
  end }
end
return {
  page("/plain-html", "T & U\n" .. site .. "/plain-html\n\n# Head\n\ncaf\u{e9} link"),
  page("/plain-html", "T & U\n" .. site .. "/plain-html\n\n# Head\n\ncaf\u{e9} [link](/x)", { links = true }),
  page("/hop", "T & U\n" .. site .. "/plain-html\n\n# Head\n\ncaf\u{e9} link"),
  page("/latin", "caf\u{e9} \u{2013} \u{20ac}5"),
  page("/meta", "na\u{ef}ve \u{201c}quoted\u{201d}"),
  page("/bom", "marked"),
  page("/no-type", "untyped"),
  page("/empty", site .. "/empty has no text"),
  page("/script-only", site .. "/script-only has no text"),
  page("/hidden", "seen"),
  page("/entities", "<b> \u{a9} \u{4e16} &unknown; &"),
  page("/json", '{"a": [1, 2]}'),
  page("/gzip", "unpacked"),
  page("/busy", "now"),
  { "/unclosed", function()
    local text = visit { url = site .. "/unclosed" }
    for _, word in ipairs { "one", "two", "a", "b", "c" } do test.matches(text, "%f[%w]" .. word .. "%f[%W]") end
  end },
  { "parts", function()
    local text = visit { url = site .. "/long" }
    test.matches(text, "word0 word1 .*%[part 1 of 6; continue with part=2%]$")
    local all = {}
    for part = 1, 6 do all[part] = visit({ url = site .. "/long", part = part }):gsub("%[part %d of 6.*", "") end
    for i = 0, 5999 do assert(table.concat(all):find(("word%d"):format(i), 1, true), i) end
    test.matches(visit { url = site .. "/long", part = 7 }, "has 6 parts; part=7 is past the end")
    test.matches(visit { url = site .. "/counts" }, "\n1$", "one request for all parts")
    test.matches(visit { url = site .. "/line" }, "^[^\n]*\n\nx+\n%[part 1 of 3")
  end },
  { "what is no text is kept for read_file", function()
    test.matches(visit { url = site .. "/paper" }, "is application/pdf, 13 bytes; kept as web/paper%.pdf")
    test.equal(fs.read "web/paper.pdf", "%PDF-1.4 fake")
    test.matches(visit { url = site .. "/pic.png?x=1" }, "kept as web/pic%.png")
    test.matches(visit { url = site .. "/pic.png?x=2" }, "kept as web/pic%-2%.png")
  end },
  refused("/deep", "nested more than 2000 levels"),
  refused("/huge", "over its ceiling"),
  refused("/nul", "is not text"),
  refused("/missing", "HTTP 404"),
  refused("/loop", "redirect"),
  refused("/inside", "127%.0%.0%.2"),
  refused("http://127.0.0.3/", "not a public one"),
  refused("http://0x7f000003/", "not a public one"),
  refused("file:///etc/passwd", "expected an address"),
  refused("ftp://example.org/", "expected an address"),
}
EOF2
expect_exit 0 agent test suite.lua --web-allow "127.0.0.1:$PORT" --lua-cpu 20s
check_out " 0 failed"

step "without the web"
expect_exit 3 agent tool visit_page '{"url":"https://example.org"}' --no-web
check_err "switched off by --no-web"

step "the replay fetches nothing"
printf '{"question":"look","answer":"done"}\n' >one.jsonl
cat >visit.llm <<LLM
call visit_page {"url": "http://127.0.0.1:$PORT/plain-html"}
---
text done
LLM
start_fake --script visit.llm
expect_exit 0 agent run tools --tools visit_page --web-allow "127.0.0.1:$PORT" --dataset one.jsonl --model m \
    --base-url "$BASE_URL" -o run -q
stop_fake
assert_json run/events.jsonl 'any(e["event"] == "tool_call_end" and "caf\u00e9 link" in e["data"]["content"] for e in d)'
stop_all
expect_exit 0 agent replay run --mode hermetic -o again
cmp run/events.jsonl again/events.jsonl || fail "events differ"

end_test
