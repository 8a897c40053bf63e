# The reference servers of MCP (npm): listed, called, cancelled and ended.  Skipped where npm cannot fetch them.
# Long: it fetches programs of others.
. "$(dirname "$0")/lib.sh"

npm_reached || skip "npm is not installed, or its registry cannot be reached"
P=@modelcontextprotocol
timeout 30 npm install --prefix npm --no-audit --no-fund --silent $P/server-everything@2026.8.31 \
    $P/server-filesystem@2026.8.31 $P/server-memory@2026.8.31 >npm.log 2>&1 ||
    skip "npm could not fetch the servers: $(tail -1 npm.log)"
BIN=$WORK/npm/node_modules/.bin
mkdir files
echo hello >files/a.txt

step "list"
expect_exit 0 agent list tools --mcp "$BIN/mcp-server-everything" --mcp "$BIN/mcp-server-memory" \
    --mcp "$BIN/mcp-server-filesystem '$WORK/files'"
check_out mcp__everything__echo
check_out mcp__memory-server__create_entities
check_out mcp__secure-filesystem-server__read_text_file

step "call, cancel"
cat >suite.lua <<EOF2
local tools, test = require "ipw.tools", require "ipw.test"
local kit
local function call(name, args)
  kit = kit or tools.open { "mcp:1", "mcp:2", "mcp:3" }
  return kit:invoke("mcp__" .. name, args)
end
return {
  { "echo", function() test.equal(call("everything__echo", { message = "h\u{e9}llo" }), "Echo: h\u{e9}llo") end },
  { "an image", function()
    local text = call("everything__get-tiny-image", {})
    local name = text:match "%[image/png, %d+ bytes: (mcp/[^%]]+)%]"
    test.equal(require("ipw.fs").read(name):sub(2, 4), "PNG")
  end },
  { "wrong arguments", function()
    local text, ok = call("everything__get-sum", { a = "two" })
    test.equal(ok, false)
    test.matches(text, "expected number")
  end },
  { "a long operation is cancelled, and the server goes on", function()
    local text, _, word = call("everything__trigger-long-running-operation", { duration = 60, steps = 30 })
    test.equal(word, "timeout", text)
    test.equal(call("everything__echo", { message = "on" }), "Echo: on")
  end },
  { "memory keeps what it was told", function()
    call("memory-server__create_entities", { entities = { { name = "ipw", entityType = "p", observations = { "joules" } } } })
    test.matches(call("memory-server__search_nodes", { query = "joules" }), '"ipw"')
  end },
  { "files", function()
    test.equal(call("secure-filesystem-server__read_text_file", { path = "$WORK/files/a.txt" }), "hello\n")
    local text, ok = call("secure-filesystem-server__read_text_file", { path = "/etc/passwd" })
    test.equal(ok, false)
    test.matches(text, "outside allowed directories")
  end },
  { "the end", function() kit:close() end },
}
EOF2
expect_exit 0 agent test suite.lua --mcp "$BIN/mcp-server-everything" \
    --mcp "env MEMORY_FILE_PATH='$WORK/memory.json' $BIN/mcp-server-memory" \
    --mcp "$BIN/mcp-server-filesystem '$WORK/files'" --mcp-timeout 5s
check_out " 0 failed"

step "nothing is left"
! pgrep -f "$WORK/npm" >/dev/null || fail "a server lives: $(pgrep -af "$WORK/npm")"

end_test
