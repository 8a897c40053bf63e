# MCP servers that do wrong, over stdio and HTTP: each ends the call that it spoils, and no more.  P-16.
# Sanitizer: servers of tools that do wrong.
. "$(dirname "$0")/lib.sh"

FAKE_MCP=$IPW_SOURCE_DIR/tests/fake/mcp.py

# Most of it waits for answers that do not come, so parts of it run at the same time.
stdio() { # PART, of 3
    step "servers that do wrong, part $1"
    part=$1
    set --
    list="'missing'"
    for way in old result_is_text pages_for_ever pages_in_a_circle many_tools silent_at_start dies dies_again \
        dies_at_initialize dies_at_list dies_idle dies_at_restart silent floods long_line lies input_required \
        asks_again asks_a_person error structured asks_back dies_at_discover silent_at_discover slow_and_modern \
        content odd_tools two_pages too_deep; do
        set -- "$@" --mcp "exec python3 '$FAKE_MCP' bad $way '$WORK/starts.$way'"
        list="$list, '$way'"
    done
    printf '%s\n' "local ways, part = { $list }, $part" | cat - "$IPW_SOURCE_DIR/tests/e2e/mcp_faults.lua" >suite.lua
    expect_exit 0 agent test suite.lua --mcp-timeout 2s --mcp no-such-program "$@"
    check_out " 0 failed"
}
stdio_one() { stdio 1; }
stdio_two() { stdio 2; }
stdio_three() { stdio 3; }

http() {
    step "servers over HTTP that do wrong"
    mkfifo http.out
    python3 "$FAKE_MCP" bad-http told >http.out 2>http.err &
    FAKES="$FAKES $!"
    read -r word port <http.out
    set --
    list=
    # WAY|OUTCOME|TEXT of a call; "refused": its tools cannot be listed.
    for case in 'html|refused|HTTP 200 without a JSON-RPC answer' 'refuses|refused|who? (-32000)' \
        'session_ends|ok|again: hi' 'session_ends_always|error|no session' 'stays_open|ok|said' 'lies|ok|the truth' \
        'dies|error|the answer broke off' 'floods|error|over its ceiling' 'pages_for_ever|refused|more than 64 pages' \
        'stream_stops|ok|read on after e10' 'never_ends|error|the stream of the server ended without an answer' \
        'other_number|error|the stream of the server ended without an answer' \
        'too_deep|error|nested deeper than 128' 'too_deep_stream|error|nested deeper than 128' \
        'crashes|error|HTTP 500 without a JSON-RPC answer' 'slow|timeout|no answer within 2 s'; do
        set -- "$@" --mcp "http://127.0.0.1:$port/${case%%|*}"
        list="$list [[$case]],"
    done
    cat >suite.lua <<LUA
local tools, test = require "ipw.tools", require "ipw.test"
local out = {}
for i, case in ipairs {$list } do
  local way, outcome, text = case:match "^(.-)|(.-)|(.*)$"
  out[i] = { way, function()
    local ok, kit = pcall(tools.open, { "mcp:" .. i })
    local said, word = tostring(kit), "refused"
    if ok then
      -- Where a session ends, a second one does as well.
      for _ = 1, way == "session_ends" and 3 or 1 do
        local _
        said, _, word = kit:invoke("mcp__bad__echo", { text = "hi" })
      end
      kit:close()
    end
    test.equal(word, outcome, said)
    assert(said:find(text, 1, true), said)
  end }
end
return out
LUA
    expect_exit 0 agent test suite.lua --mcp-timeout 2s "$@"
    check_out "16 passed, 0 failed"
    told() { sed -n "s/^$1 //p" told; }
    assert_eq "$(told session_ends)" "$(printf 'notifications/initialized\n%.0s' 1 2 3 && echo 'DELETE s5')"
    assert_eq "$(told slow)" "$(printf 'notifications/%s\n' initialized cancelled && echo 'DELETE s1')"
}

for function in stdio_one stdio_two stdio_three http; do beside $function; done
await_beside
! pgrep -f "$FAKE_MCP bad " >/dev/null || fail "a server lives: $(pgrep -af "$FAKE_MCP")"
expect_exit 1 agent list tools --mcp http://127.0.0.1:1/mcp
check_err "the MCP server 'http://127.0.0.1:1/mcp': "

end_test
