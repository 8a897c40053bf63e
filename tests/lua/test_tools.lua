--- ipw.tools and ipw.schema: declarations, validation, errors as text for the model.
local tools = require "ipw.tools"
local core = require "ipw.core.tool"
local schema = require "ipw.schema"
local json = require "ipw.json"
local test = require "ipw.test"
local equal = test.equal

local echo = {
  name = "echo", about = "Says it again.",
  input = {
    { "text", "string", "What to say." },
    { "times", "integer", "How often.", default = 1, min = 1, max = 3 },
  },
  run = function(args)
    if args.text == "raise" then error "boom" end
    if args.text == "nil" then return nil, "nothing to say" end
    if args.text == "end" then return { final = "42" } end
    return args.text:rep(args.times)
  end,
}

local function raises(fn, pattern)
  local ok, err = pcall(fn)
  assert(not ok and tostring(err):find(pattern), tostring(err))
end

return {
  { "the schema keeps what the declaration says", function()
    equal(json.encode(schema.to_json(echo.input)),
      '{"additionalProperties":false,"properties":{"text":{"description":"What to say.","type":"string"},' ..
      '"times":{"default":1,"description":"How often.","maximum":3,"minimum":1,"type":"integer"}},' ..
      '"required":["text"],"type":"object"}')
  end },

  { "arguments are checked, completed and coerced", function()
    equal(schema.validate(echo.input, { text = "a" }), { text = "a", times = 1 })
    equal(schema.validate(echo.input, { text = 5, times = "2" }), { text = "5", times = 2 })
    for _, case in ipairs {
      { {}, "'text' is missing" },
      { { text = "a", times = 4 }, "at most 3" },
      { { text = "a", times = 1.5 }, "type integer" },
      { { text = {} }, "type string" },
      { { text = "a", tmies = 1 }, "unknown argument 'tmies'" },
      { "text", "JSON object" },
    } do
      local ok, why = schema.validate(echo.input, case[1])
      assert(ok == nil and why:find(case[2], 1, true), why)
    end
  end },

  { "each type takes what it is, and what is meant beyond doubt", function()
    local input = {
      { "text", "string", "T.", optional = true }, { "yes", "boolean", "B.", optional = true },
      { "n", "number", "N.", optional = true, min = -1.5, max = 2.5 }, { "i", "integer", "I.", optional = true },
      { "list", "array", "A.", optional = true }, { "map", "object", "O.", optional = true },
      { "word", "string", "W.", optional = true, enum = { "left", "right" } },
      { "size", "integer", "S.", optional = true, enum = { 1, 2, 4 } },
    }
    equal(schema.validate(input, {}), {})
    for _, case in ipairs {
      { { text = "a" }, { text = "a" } }, { { text = 1.5 }, { text = "1.5" } }, { { yes = false }, { yes = false } },
      { { yes = "true" }, { yes = true } }, { { yes = "false" }, { yes = false } }, { { n = "2.5" }, { n = 2.5 } },
      { { n = -1.5 }, { n = -1.5 } }, { { i = 3.0 }, { i = 3 } }, { { i = "7" }, { i = 7 } },
      { { list = {} }, { list = {} } },
      { { list = { 1, "a" } }, { list = { 1, "a" } } }, { { map = {} }, { map = {} } },
      { { map = { a = 1 } }, { map = { a = 1 } } }, { { word = "left" }, { word = "left" } },
      { { size = "4" }, { size = 4 } }, { { text = json.null }, {} },
    } do
      local args, why = schema.validate(input, case[1])
      assert(args, why)
      equal(args, case[2])
    end
    for _, case in ipairs {
      { { text = true }, "'text' must be of type string" }, { { yes = "yes" }, "'yes' must be of type boolean" },
      { { yes = 1 }, "'yes' must be of type boolean" }, { { n = "five" }, "'n' must be of type number" },
      { { n = "5x" }, "'n' must be of type number" }, { { n = "1\0" }, "'n' must be of type number" },
      { { n = true }, "'n' must be of type number" }, { { n = -2 }, "'n' must be at least -1.5" },
      { { n = 3 }, "'n' must be at most 2.5" }, { { i = 1.5 }, "'i' must be of type integer" },
      { { i = "1.5" }, "'i' must be of type integer" }, { { list = { a = 1 } }, "'list' must be of type array" },
      { { list = "a" }, "'list' must be of type array" }, { { map = "a" }, "'map' must be of type object" },
      { { word = "up" }, "'word' must be one of: left, right" }, { { size = 3 }, "'size' must be one of: 1, 2, 4" },
      { { [1] = "x" }, "unknown argument '1' (known: text, yes, n, i, list, map, word, size)" },
    } do
      local args, why = schema.validate(input, case[1])
      assert(args == nil and why:find(case[2], 1, true), tostring(why))
    end
    local args, why = schema.validate({}, { x = 1 })
    assert(args == nil and why == "unknown argument 'x' (known: none)", tostring(why))
    args, why = schema.validate({ { "x", "string" } }, {})
    assert(args == nil and why == "argument 'x' is missing (string: )", tostring(why))
    raises(function() schema.validate("no list", {}) end, "table expected")
    raises(function() schema.validate({}) end, "value expected")
    raises(function() schema.validate({ { {}, "string" } }, {}) end, "string expected")
  end },

  { "a call answers with a tool message whatever happens", function()
    local kit <close> = tools.open { echo }
    local function say(arguments) return kit:call { id = "c1", name = "echo", arguments = arguments } end
    equal(say '{"text":"hi","times":2}', { role = "tool", tool_call_id = "c1", content = "hihi" })
    equal(say('{"text":"nil"}').content, "error: nothing to say")
    assert(say('{"text":"raise"}').content:find "boom")
    assert(say('{"text":').content:find "not valid JSON")
    assert(say('').content:find "'text' is missing")
    assert(kit:call({ id = "x", name = "ehco", arguments = "{}" }).content:find "there is no tool 'ehco'")
    say '{"text":"end"}'
    equal(kit.final, "42")
  end },

  { "a list that was opened before gives the same kit", function()
    local function look(list)
      local kit <close> = tools.open(list)
      local serial = {}
      local shown = { tostring(kit.schemas), kit:describe(), kit:names() }
      for i, tool in ipairs(kit.list) do
        assert(kit.by_name[tool.name] == tool)
        serial[i] = tool.serial or false
      end
      local text, ok = kit:invoke("calculator", '{"expression":"2 + 3"}')
      equal({ text, ok }, { "5", true })
      equal({ (kit:invoke("calculator", '{"expresion":"2"}')) },
        { "error: argument 'expression' is missing (string: For example (17.5 + 4) * 3 or round(10 / 3, 2).)" })
      return { shown, serial }
    end
    local list = { "edit_file", "calculator", "think" }
    local first = look(list)
    equal(look(list), first)
    equal(look(list), first)
    -- A tool of the agent's own makes the kit take the long way.
    local long = look { "edit_file", "calculator", "think", echo }
    local kit <close> = tools.open { echo }
    equal(long[1][1], first[1][1]:sub(1, -2) .. "," .. tostring(kit.schemas):sub(2))
    equal(long[1][2], first[1][2] .. "\n" .. kit:describe())
    equal(long[1][3], first[1][3] .. ", echo")
    equal(table.move(long[2], 1, 3, 1, {}), first[2])
    raises(function() tools.open { "think", "think" } end, "listed twice")
    raises(function() tools.open { "think", "thinc" } end, "did you mean 'think'")
  end },

  { "several calls are answered in order", function()
    local kit <close> = tools.open { echo }
    local out = kit:call_all { { id = "1", name = "echo", arguments = '{"text":"a"}' },
      { id = "2", name = "echo", arguments = '{"text":"b"}' } }
    equal({ out[1].content, out[2].content, out[2].tool_call_id }, { "a", "b", "2" })
  end },

  { "a wrong tool is refused with the place of the fault", function()
    raises(function() tools.open { "calculatr" } end, "did you mean 'calculator'")
    raises(function() tools.open { echo, echo } end, "listed twice")
    raises(function()
      tools.open { { name = "x", about = "y", run = print, inputs = {} } }
    end, "unknown field 'inputs'")
    raises(function()
      tools.open { { name = "x", about = "y", run = print, input = { { "a", "strng" } } } }
    end, "unknown type 'strng'")
  end },

  { "calls run side by side, but for those that change something", function()
    local ipw = require "ipw"
    local running, most, order = 0, 0, {}
    local function tool(name, serial)
      return { name = name, about = "Waits.", serial = serial, run = function()
        running = running + 1
        most = math.max(most, running)
        if serial then equal(running, 1, "alone") end
        ipw.sleep(0.01)
        order[#order + 1] = name
        running = running - 1
        return name
      end }
    end
    local kit <close> = tools.open { tool "look", tool("change", true) }
    local calls = {}
    for i, name in ipairs { "look", "look", "change", "change", "look", "look", "look" } do
      calls[i] = { id = "c" .. i, name = name, arguments = "{}" }
    end
    local messages = kit:call_all(calls)
    equal(#messages, 7)
    for i, message in ipairs(messages) do
      equal(message.tool_call_id, "c" .. i)
      equal(message.content, calls[i].name)
    end
    equal(most, 3)
    equal(table.concat(order, " "), "look look change change look look look")
    equal(kit:call_all {}, {})
  end },

  { "every built-in tool declares what it changes, its seconds and its retries", function()
    local seen = 0
    for _, name in ipairs { "calculator", "edit_file", "final_answer", "list_files", "python", "python_session",
      "read_file", "search_files", "shell", "sub_model", "think", "visit_page", "web_search", "write_file" } do
      local tool = core.load(assert(core.find(name)))
      equal(type(tool.effects), "string", name)
      equal(type(tool.seconds), "number", name)
      equal(math.type(tool.retries), "integer", name)
      assert(not tool.serial or tool.effects ~= "none", name)
      assert(tool.seconds > 0 or not tool.needs, name) -- what starts programs or asks servers waits
      seen = seen + 1
    end
    for _, path in ipairs(require("ipw.core.data").builtin_list "agents/tools") do
      if path:find "%.lua$" then seen = seen - 1 end
    end
    equal(seen, 0)
  end },
}
