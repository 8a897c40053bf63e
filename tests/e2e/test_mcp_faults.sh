# MCP servers that do wrong, over stdio and HTTP: each ends the call that it spoils, and no more.  P-16.
. "$(dirname "$0")/lib.sh"

FAKE_MCP=$IPW_SOURCE_DIR/tests/fake/mcp.py

step "servers that do wrong"
ways="old result_is_text pages_for_ever pages_in_a_circle many_tools silent_at_start dies dies_again dies_at_initialize
dies_at_list dies_idle dies_at_restart silent floods long_line lies input_required asks_again asks_a_person error structured asks_back dies_at_discover silent_at_discover
slow_and_modern content odd_tools two_pages"
set --
list="'missing'"
for way in $ways; do
    set -- "$@" --mcp "exec python3 '$FAKE_MCP' bad $way '$WORK/starts.$way'"
    list="$list, '$way'"
done
printf '%s\n' "local ways = { $list }" | cat - "$IPW_SOURCE_DIR/tests/e2e/mcp_faults.lua" >suite_mcp_faults.lua
expect_exit 0 agent test suite_mcp_faults.lua --mcp-timeout 2s --mcp no-such-program "$@"
check_out " 0 failed"
! pgrep -f "$FAKE_MCP bad" >/dev/null || fail "a server lives: $(pgrep -af "$FAKE_MCP")"

step "servers over HTTP that do wrong"
for case in 'html|refused|HTTP 200 without a JSON-RPC answer' 'refuses|refused|who? (-32000)' \
    'session_ends|ok|again: hi' 'session_ends_always|error|no session' 'stays_open|ok|said' 'lies|ok|the truth' \
    'dies|error|the answer broke off' 'floods|error|over its ceiling' 'pages_for_ever|refused|more than 64 pages' 'stream_stops|ok|read on after e10' \
    'never_ends|error|the stream of the server ended without an answer' \
    'other_number|error|the stream of the server ended without an answer' \
    'crashes|error|HTTP 500 without a JSON-RPC answer' 'slow|timeout|no answer within 2 s'; do
    way=${case%%|*} rest=${case#*|}
    rm -f http.out
    mkfifo http.out
    python3 "$FAKE_MCP" bad-http "told.$way" >http.out 2>http.err &
    FAKES="$FAKES $!"
    read -r word port <http.out
    cat >suite.lua <<LUA
local tools, test = require "ipw.tools", require "ipw.test"
return { { "$way", function()
  local ok, kit = pcall(tools.open, { "mcp:1" })
  local text, outcome = tostring(kit), "refused"
  if ok then
    local _
    text, _, outcome = kit:invoke("mcp__bad__echo", { text = "hi" })
    if "$way" == "session_ends" then -- a second session ends as well
      for _ = 1, 2 do text, _, outcome = kit:invoke("mcp__bad__echo", { text = "hi" }) end
    end
    kit:close()
  end
  test.equal(outcome, "${rest%%|*}", text)
  assert(text:find("${rest#*|}", 1, true), text)
end } }
LUA
    expect_exit 0 agent test suite.lua --mcp-timeout 2s --mcp "http://127.0.0.1:$port/$way"
done
assert_eq "$(cat told.session_ends)" "$(printf 'notifications/initialized\n%.0s' 1 2 3 && echo 'DELETE s5')"
assert_eq "$(cat told.slow)" "$(printf 'notifications/%s\n' initialized cancelled && echo 'DELETE s1')"
expect_exit 1 agent list tools --mcp http://127.0.0.1:1/mcp
check_err "the MCP server 'http://127.0.0.1:1/mcp': "

end_test
