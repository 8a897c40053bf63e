-- MCP servers that do wrong (tests/fake/mcp.py bad WAY): each ends the call that it spoils, and no more.
-- The servers are given in the order of `ways`, which e2e/test_mcp_faults.sh puts before this file, as it does
-- `part`: which third of the tests is run.
local fs = require "ipw.fs"
local tools = require "ipw.tools"
local json = require "ipw.json"
local test = require "ipw.test"
local equal, matches = test.equal, test.matches

local number = {}
for i, way in ipairs(ways) do number[way] = "mcp:" .. i end

local function refused(way, pattern)
  return { way, function()
    local err = test.raises(function() tools.open { number[way] } end, pattern)
    matches(tostring(err), "the MCP server '")
  end }
end

--- One call of the fault, and then one that is good.
local function call(way, pattern, outcome, then_good)
  return { way, function()
    local kit <close> = tools.open { number[way], "calculator" }
    local text, ok, word = kit:invoke("mcp__bad__echo", { text = "fault" })
    matches(text, pattern)
    equal(word, outcome)
    equal(ok, outcome == "ok")
    equal(kit:invoke("calculator", { expression = "1 + 1" }), "2")
    text, _, word = kit:invoke("mcp__bad__echo", { text = "hi" })
    matches(text, then_good or "^again: hi$")
    if then_good then equal(word, "tool_gone") end
  end }
end

local all = {
  refused("old", "it speaks revision 1999%-01%-01"),
  refused("result_is_text", "an answer without a result"),
  refused("pages_for_ever", "more than 64 pages"),
  refused("pages_in_a_circle", "a page leads to itself"),
  refused("many_tools", "more than 512 tools"),
  refused("missing", "exit status 127: .*no%-such%-program"),
  refused("silent_at_start", "no answer within 2 s"),
  refused("dies_at_initialize", "it ended with exit status 5"),
  refused("dies_at_list", "it ended with exit status 6"),
  call("dies", "has ended: it ended with exit status 4: out of luck", "tool_gone"),
  call("dies_again", "has ended: it ended with exit status 4", "tool_gone", "the server of this tool has ended"),
  call("silent", "no answer within 2 s %(progress 2 of 5%)", "timeout"),
  call("floods", "more than 10000 messages and no answer", "tool_gone"),
  call("long_line", "a line of more than 16 MiB", "tool_gone"),
  call("lies", "^again: fault$", "ok"),
  call("input_required", "asks for more input", "error"),
  call("asks_again", "asks for more input", "error"),
  call("asks_a_person", '^again: %[{"q": {"action": "decline"}}, "s"%]$', "ok"),
  call("error", "it broke %(%-32603%)", "error"),
  call("structured", '^{"a":1,"b":%[%]}$', "ok"),
  call("too_deep", "its answer cannot be read: .*nested deeper than 128 levels", "error"),
  call("asks_back", "^again: fault$", "ok"),
  call("dies_at_discover", "^again: fault$", "ok"),
  call("silent_at_discover", "^again: fault$", "ok"),
  call("slow_and_modern", "^again: fault$", "ok"),

  { "P-16: a server that dies is started once more, and then not again", function()
    local kit <close> = tools.open { number.dies }
    local words = {}
    for i, text in ipairs { "fault", "hi", "fault", "hi" } do
      words[i] = select(3, kit:invoke("mcp__bad__echo", { text = text }))
    end
    equal(words, { "tool_gone", "ok", "tool_gone", "tool_gone" })
  end },

  { "P-16: a server that dies between two calls, and one that dies when it is started again", function()
    local kit <close> = tools.open { number.dies_idle, number.dies_at_restart }
    local function words(name)
      local out = {}
      for i, text in ipairs { "fault", "hi", "hi", "fault", "hi" } do out[i] = select(3, kit:invoke(name, { text = text })) end
      return out
    end
    equal(words "mcp__bad__echo", { "ok", "tool_gone", "ok", "ok", "tool_gone" })
    equal(words "mcp__bad__echo_2", { "tool_gone", "tool_gone", "tool_gone", "tool_gone", "tool_gone" })
  end },

  { "a call without an answer is cancelled at the server; a late answer is nobody's", function()
    local kit <close> = tools.open { number.silent }
    fs.write("cancelled", "")
    equal(select(3, kit:invoke("mcp__bad__echo", { text = "fault" })), "timeout")
    equal(kit:invoke("mcp__bad__echo", { text = "hi" }), "again: hi")
    equal(fs.read "cancelled", "timeout\n")
  end },

  { "content of every kind becomes text, bytes become files", function()
    local kit <close> = tools.open { number.content }
    local text = kit:invoke("mcp__bad__echo", { text = "fault" })
    local name = text:match("%[audio/wav, 2 bytes: ([^%]]+)%]")
    equal(text:gsub("mcp/[%w_.-]+", "FILE"), "\n\n[content of type hologram]\n[unknown type without data]\n" ..
      "[image/png: not base64]\n[audio/wav, 2 bytes: FILE]\n[a resource without content]\nend")
    equal(fs.read(name), "hi")
  end },

  { "odd names, schemas and pages", function()
    local kit <close> = tools.open { number.odd_tools, number.two_pages }
    equal(kit:names(), "mcp__bad__a_b_c_" .. ("x"):rep(48) .. ", mcp__bad__a_b_c_" .. ("x"):rep(44) ..
      "_2, mcp__bad__bare, mcp__bad__ro, mcp__bad__echo, mcp__bad__second")
    local schemas = json.decode(tostring(kit.schemas))
    equal(schemas[3]["function"].parameters, { properties = {}, type = "object" })
    equal(kit.by_name["mcp__bad__ro"].serial, false)
    equal(kit.by_name["mcp__bad__bare"].serial, true)
    equal(schemas[5]["function"].parameters["$schema"], nil)
    matches(kit:describe(), 'mcp__bad__echo: Says it again%.\n  "text" %(string%): What%.')
  end },

  { "arguments that are no object are refused before the server sees them", function()
    local kit <close> = tools.open { number.lies }
    local text, ok, word = kit:invoke("mcp__bad__echo", '"text"')
    equal({ ok, word }, { false, "bad_arguments" })
    matches(text, "expected a JSON object")
    equal(select(3, kit:invoke("mcp__bad__echo", "{oops")), "bad_arguments")
  end },

  { "an entry that names no server", function()
    test.raises(function() tools.open { "mcp:99" } end, "this run has no such server %(%-%-mcp%)")
    test.raises(function() tools.open { "mcp:x" } end, "is named mcp:1")
  end },
}

local mine = {}
for i, one in ipairs(all) do
  if i % 3 == part - 1 then mine[#mine + 1] = one end
end
return mine
