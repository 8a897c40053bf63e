-- The tool calls of a captured exchange, made again: `calls` (of tests/fake/mcp.py) is put before this
-- file by e2e/test_mcp.sh.
local tools = require "ipw.tools"
local test = require "ipw.test"

local out, kit = {}, nil
for i, call in ipairs(calls) do
  out[i] = { call.name, function()
    kit = kit or tools.open { "mcp:1" }
    local text, ok, outcome = kit:invoke(prefix .. call.name, call.arguments)
    if kit.by_name[prefix .. call.name] == nil then
      test.equal(outcome, "unknown_tool")
      return
    end
    test.equal(ok, not call.failed, text)
    if call.error ~= "" then
      assert(text:find(call.error, 1, true), text)
      return
    end
    local from = 1
    for _, part in ipairs(call.expect) do
      local _, to = text:find(part, from, true)
      assert(to, ("%q is not in %q"):format(part, text:sub(from)))
      from = to + 1
    end
    for name in text:gmatch("%d+ bytes: (mcp/[%w_.-]+)%]") do
      local bytes = require("ipw.fs").read(name)
      test.equal(bytes:sub(1, 8), "\x89PNG\r\n\x1a\n", name)
    end
  end }
end
out[#out + 1] = { "the capture has calls", function()
  assert(#calls > 0)
  kit:close()
end }
return out
