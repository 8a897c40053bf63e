# ipw.http: web requests of scripts: what comes back, what is refused, what the record has of it.
# Sanitizer: web requests of scripts, hostile ones too.
. "$(dirname "$0")/lib.sh"

mkfifo port
python3 "$IPW_SOURCE_DIR/tests/e2e/web.py" "$WORK/site.log" >port 2>site.err &
FAKES="$FAKES $!"
read -r PORT <port
SITE=http://127.0.0.1:$PORT
cat >cases_test.lua <<EOF
local SITE, PORT = "$SITE", "$PORT"
EOF
cat >>cases_test.lua <<'EOF'
local http, test = require "ipw.http", require "ipw.test"
local ipw = require "ipw"
local equal, matches = test.equal, test.matches

local function fails(pattern, word, page, why, got)
  equal(page, nil)
  matches(why, pattern)
  equal(got, word)
end

return {
  { "get", function()
    local page = assert(http.get(SITE .. "/page?q=" .. http.escape "a b&c"))
    equal(page.body, "café")
    equal(page.status, 200)
    equal(page.url, SITE .. "/page?q=a%20b%26c")
    equal(page.type, "text/plain; charset=utf-8")
    equal(page.headers["x-one"], "1")
  end },
  { "query sorts its keys", function() equal(http.query { q = "ä b", n = 2, a = true }, "a=true&n=2&q=%C3%A4%20b") end },
  { "post: text, form, headers", function()
    equal(assert(http.post(SITE .. "/echo", "plain")).body, "plain")
    equal(assert(http.post(SITE .. "/echo", { b = 2, a = "x y" })).body, "a=x%20y&b=2")
    equal(assert(http.post(SITE .. "/echo", "{}", { headers = { ["Content-Type"] = "text/x" } })).body, "{}")
  end },
  { "json both ways", function()
    local json = require "ipw.json"
    equal(assert(http.json(SITE .. "/json")), { a = json.null, b = { 1, 2 } })
    equal(assert(http.json(SITE .. "/echo", { z = 1, y = { "q" } })), { y = { "q" }, z = 1 })
    local value, why = http.json(SITE .. "/page")
    equal(value, nil)
    matches(why, "the answer is not JSON")
  end },
  { "a status that is no success is a failure with the response", function()
    local page, why, word, response = http.get(SITE .. "/missing?secret=1")
    equal(page, nil)
    matches(why, "/missing: HTTP 404: no such page")
    test.ok(not why:find "secret")
    equal(word, "http")
    equal(response.status, 404)
    equal(assert(http.request { url = SITE .. "/missing" }).status, 404)
  end },
  { "methods", function()
    equal(assert(http.request { url = SITE .. "/page", method = "HEAD" }).body, "")
    equal(assert(http.request { url = SITE .. "/echo", method = "PUT", body = "p" }).body, "p")
  end },
  { "redirects", function()
    equal(assert(http.get(SITE .. "/hop")).url, SITE .. "/page")
    equal(assert(http.post(SITE .. "/see-other", "x")).body, "café")
    equal(assert(http.post(SITE .. "/same-method", "kept")).body, "kept")
    fails("too many redirects", "http", http.get(SITE .. "/loop"))
    fails("does not start with http", "http", http.get(SITE .. "/file"))
    equal(assert(http.request { url = SITE .. "/hop", redirects = 0 }).status, 302)
  end },
  { "headers stay with the origin that was named", function()
    local secret = { headers = { Authorization = "Bearer s3cret", ["X-Api-Key"] = "k3y" } }
    assert(http.get(SITE .. "/hop", secret))
    assert(http.get(SITE .. "/away", secret))
  end },
  { "caps and deadlines", function()
    fails("over its ceiling", "limit", http.get(SITE .. "/big", { max_bytes = "64K" }))
    equal(#assert(http.get(SITE .. "/big", { max_bytes = 300000 })).body, 300000)
    fails("deadline", "timeout", http.get(SITE .. "/slow", { seconds = 0.2 }))
    fails("broke off", "network", http.get(SITE .. "/cut"))
    fails("no connection", "network", http.get("http://localhost:1/"))
  end },
  { "addresses inside are refused, also behind a redirect, a name or a strange spelling", function()
    for _, url in ipairs { "http://127.0.0.2:" .. PORT, "http://10.0.0.1", "http://169.254.169.254/latest",
      "http://[::1]:" .. PORT, "http://0x7f000002:" .. PORT, "http://2130706434:" .. PORT, "http://0177.2:" .. PORT,
      "http://[::ffff:127.0.0.2]:" .. PORT } do
      fails("not a public one", "permission", http.get(url .. "/page", { seconds = 5 }))
    end
    fails("not a public one", "permission", http.get(SITE .. "/inside"))
  end },
  { "slips are told", function()
    test.raises(function() http.request { ulr = SITE } end, "unknown field 'ulr' %(did you mean 'url'%?%)")
    test.raises(function() http.request { url = 5 } end, "url: expected")
    test.raises(function() http.get(SITE, { seconds = -1 }) end, "seconds")
    test.raises(function() http.get(SITE, { headers = { A = 5 } }) end, "headers")
    fails("http://", "invalid", http.get "ftp://example.org/")
    fails("line break", "invalid", http.get(SITE, { headers = { A = "x\r\nB: y" } }))
  end },
  { "side by side, and cancelled with their branch", function()
    local ok = pcall(ipw.map, { "/slow", "boom" }, function(path)
      if path == "boom" then ipw.sleep(0.05) error "boom" end
      return http.get(SITE .. path)
    end)
    test.ok(not ok)
    local pages = ipw.map({ "/a", "/b", "/c" }, function(path) return http.get(SITE .. path).body end)
    equal(pages, { "/a", "/b", "/c" })
  end },
}
EOF
step "everything in the runtime"
expect_exit 0 agent test cases_test.lua --web-allow "127.0.0.1:$PORT" --web-allow localhost
check_out "12 passed, 0 failed"
grep '^GET /page .*host=127.0.0.1 .*auth=Bearer s3cret key=k3y' site.log >/dev/null || fail "headers were lost on the way to the same origin"
grep '^GET /page .*host=localhost .*auth=None key=None' site.log >/dev/null || fail "headers went to another origin"
assert_lacks site.log "host=127.0.0.2"

step "refused: without --web-allow, under --no-web, behind a proxy"
cat >get.lua <<EOF
return { name = "get", about = "Fetches.", needs = { "http" },
  run = function() local page, why = require("ipw.http").get("$SITE/page"); return page and page.body, why end }
EOF
expect_exit 1 agent tool ./get.lua
check_err "its address is not a public one (use --web-allow 127.0.0.1 to allow it)"
expect_exit 0 agent tool ./get.lua --web-allow '*'
assert_eq "$(cat out)" "café"
expect_exit 3 agent tool ./get.lua --no-web
check_err "--no-web"
sed "s|$SITE|http://example.invalid|" get.lua >away.lua
export http_proxy=http://user:pass@127.0.0.1:$PORT
expect_exit 1 agent tool ./away.lua
check_err "--web-via-proxy"
no_err pass
expect_exit 0 agent tool ./away.lua --web-via-proxy
check_out "http://example.invalid/page"
unset http_proxy

step "a request is a span with joules' place in the trace, and its content in the record"
cat >agent.lua <<EOF
local http, llm = require "ipw.http", require "ipw.llm"
return { name = "web", run = function(query)
  local page = assert(http.get("$SITE/page"))
  llm.chat { messages = { llm.user(query.prompt) } }
  http.get("$SITE/missing")
  return page.body
end }
EOF
printf '{"question":"What?","answer":"42"}\n' >rows.jsonl
start_fake --bench 1
expect_exit 0 agent run agent.lua --dataset rows.jsonl --model fake-model --base-url "$BASE_URL" \
    --output run --web-allow 127.0.0.1
assert_json run/traces.jsonl "[(s['kind'], s['name'], s['outcome'], s['result_bytes']) for s in d[0]['spans_before']] == [('http', 'GET 127.0.0.1:$PORT', 'ok', 5)]"
assert_json run/traces.jsonl "[s['outcome'] for s in d[0]['turns'][0]['spans'] if s['kind'] == 'http'] == ['http_error']"
assert_json run/events.jsonl "[e['data']['body'] for e in d if e['event'] == 'span_end'] == ['caf\u00e9', 'no such page']"
assert_json run/events.jsonl "[e['data']['url'] for e in d if e['event'] == 'span_start'] == ['$SITE/page', '$SITE/missing']"
expect_exit 0 agent replay run
assert_matches "$WORK/out" 'http .*GET 127.0.0.1:[0-9]*: ok, 5 bytes'

end_test
