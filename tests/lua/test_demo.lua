-- The demo model works from the conversation: other numbers, other answers.
local demo = require "ipw.models.demo"
local calc = require "ipw.calc"
local json = require "ipw.json"
local preview = require "ipw.preview"
local react = require "ipw.react"

local TOOLS = {
  { name = "calculator", input = { { "expression", "string", "" } } },
  { name = "read_file", input = { { "path", "string", "" } } },
  { name = "python", input = { { "code", "string", "" } } },
}

--- Tools of our own: files from a table, real arithmetic, a scripted Python.
local function run_tool(world, name, args)
  world.calls[#world.calls + 1] = { name = name, args = args }
  if name == "calculator" then
    local value, why = calc.eval(args.expression)
    return value and calc.format(value) or "error: " .. why
  elseif name == "read_file" then
    local text = world.files[args.path]
    if not text then return "error: cannot read " .. tostring(args.path) end
    if args.path:find("%.csv$") then return preview.table_text(preview.csv(text)) end
    if args.path:find("%.json$") then return preview.json_text(text) end
    return text
  elseif name == "python" then
    return world.python(args.code)
  end
  return "error: there is no tool " .. name
end

--- A conversation in plain text, as agents/react.lua holds it; returns the final answer.
local function by_text(world, question)
  local thread = { { role = "system", content = react.format .. "\ncalculator read_file python" },
                   { role = "user", content = question } }
  for turn = 1, 8 do
    local reply = demo.reply({ messages = thread })
    world.turns = turn
    if #reply.calls > 0 then error("native calls in a text conversation") end
    local step = react.parse(reply.text, TOOLS)
    if step.problem then error(step.problem.message .. "\n" .. reply.text) end
    if step.final then return step.final end
    local shown = {}
    for i, action in ipairs(step.actions) do
      shown[i] = (#step.actions == 1 and "Observation: " or "Observation (" .. action.name .. "): ")
        .. run_tool(world, action.name, action.input)
    end
    thread[#thread + 1] = { role = "assistant", content = reply.text }
    thread[#thread + 1] = { role = "user", content = table.concat(shown, "\n\n") }
  end
  error("no answer in 8 turns")
end

--- The same with native calls; the answer follows the marker that the system prompt asked for.
local function by_calls(world, question)
  local offered = {}
  for i, tool in ipairs(TOOLS) do
    offered[i] = { type = "function", ["function"] = { name = tool.name } }
  end
  local thread = { { role = "system", content = "End with FINAL ANSWER: [YOUR FINAL ANSWER]" },
                   { role = "user", content = { { type = "text", text = question } } } }
  for turn = 1, 8 do
    local reply = demo.reply({ messages = thread, tools = offered })
    world.turns = turn
    if #reply.calls == 0 then
      if reply.finish ~= "stop" then error("finish " .. reply.finish) end
      return reply.text:match("FINAL ANSWER: (.*)$") or reply.text
    end
    if reply.finish ~= "tool_calls" then error("finish " .. reply.finish) end
    local message = { role = "assistant", content = reply.text, tool_calls = {} }
    thread[#thread + 1] = message
    for i, call in ipairs(reply.calls) do
      local id = "call_" .. turn .. "_" .. i
      message.tool_calls[i] = { id = id, type = "function",
        ["function"] = { name = call.name, arguments = json.encode(call.arguments) } }
      thread[#thread + 1] = { role = "tool", tool_call_id = id,
        content = run_tool(world, call.name, call.arguments) }
    end
  end
  error("no answer in 8 turns")
end

local cases = {}

--- Asks in both forms; `python` may be the output of the program or a function of its code.
local function asks(name, question, want, files, python)
  for form, ask in pairs { text = by_text, calls = by_calls } do
    cases[#cases + 1] = { name .. ", by " .. form, function()
      local world = { calls = {}, files = files or {}, python = function(code)
        if type(python) == "function" then return python(code) end
        return python or "error: no python in this test"
      end }
      local got = ask(world, question)
      local part = want:match("^~(.*)")        -- "~words": the answer holds them
      if part and not got:find(part, 1, true) or not part and got ~= want then
        error(("got %q, want %q"):format(got, want))
      end
    end }
  end
end

local function energy(a, b, c, d)
  return ("A server draws %d watts during the first %d minutes of an hour and %d watts during the " ..
    "remaining %d minutes. How much energy does it use in that hour, in watt-hours? Answer with " ..
    "the number only."):format(a, b, c, d)
end
asks("energy of two stretches", energy(412, 35, 268, 25), "352")
asks("energy, other numbers", energy(600, 20, 300, 40), "400")

local function power(a, b)
  return { ["power.csv"] = "time,rack,power_w,status\n10:00,B1,100,OK\n10:00,B2," .. a ..
    ",OK\n10:05,B1,130,OK\n10:05,B2," .. b .. ",OK\n10:10,B2,9999,ERR" }
end
local HIGHEST = "File: power.csv\nWhat is the highest power reading of rack B2, in watts?"
asks("highest reading", HIGHEST, "170", power(150, 170))
asks("highest reading, other numbers", HIGHEST, "180", power(180, 170))
asks("lowest reading", (HIGHEST:gsub("highest", "lowest")), "150", power(150, 170))
asks("no such rack", (HIGHEST:gsub("B2", "C9")), "~has no readings of rack C9", power(1, 2))

local HELD = "Attached: power.csv. Assume that each reading holds for the %s minutes that follow " ..
  "it. How much energy did rack B1 use during the hour, in watt-hours, rounded?"
asks("energy from readings", HELD:format("five"), "19", power(1, 2))
asks("energy from readings, longer steps", HELD:format("30"), "115", power(1, 2))

local function log(force)
  return { ["log.txt"] = 'Log of a barque\n\n3 May  Wind W force ' .. force .. '. Distance 100 ' ..
    'nautical miles. Spoke the brig "Anna".\n4 May  Wind N force 3. Distance 50 nautical miles.\n' ..
    '5 May  Wind N force 9. Distance 25 nautical miles.\n\n' ..
    'Provisions on 5 May: water 100 gallons, bread 45 pounds.\n' ..
    'Daily ration: water 9 gallons, bread ' .. force .. ' pounds.' }
end
local WIND = "On how many days does log.txt record wind of force 7 or more, and how many nautical " ..
  "miles in all did the ship make on those days?"
asks("days of wind", WIND, "2, 125", log(8))
asks("days of wind, less wind", WIND, "1, 25", log(6))
local SPOKE = "In log.txt, what is the name of the brig that the Swan spoke on 3 May?"
asks("the ship spoken", SPOKE, "Anna", log(1))
asks("no ship spoken", (SPOKE:gsub("3 May", "4 May")), "~names no brig", log(1))
local RATION = "Using the provisions and the daily ration at the end of log.txt, which of the two " ..
  "runs out first, and for how many full days does it last?"
asks("provisions", RATION, "bread, 5", log(8))
asks("provisions, smaller ration", RATION, "water, 11", log(1))

local TIMES = { ["times.csv"] = "train,departs,destination,days\nA 1,08:00,Harbour,Mon-Fri\n" ..
  "A 2,09:30,Harbour,daily\nA 3,09:00,Hill,daily\nA 4,10:00,Harbour,Sat-Sun\n" }
local NEXT = "The timetable is times.csv and it is a %s, %s. Which train is the next one that " ..
  "leaves for Harbour?"
asks("next train", NEXT:format("Monday", "07:00"), "A 1", TIMES)
asks("next train on a Sunday", NEXT:format("Sunday", "07:00"), "A 2", TIMES)
asks("next train, later", NEXT:format("Saturday", "09:30"), "A 4", TIMES)
asks("no train any more", NEXT:format("Monday", "09:45"), "~no train leaves for Harbour", TIMES)

-- What the program is asked to compute comes from question and file; what it prints is the answer.
asks("digits", "What is the sum of the decimal digits of 3 to the power of 77?", "17",
  nil, function(code) return code:find("3 ** 77", 1, true) and "17" or "error: " .. code end)
asks("primes", "How many prime numbers below 300 have 9 as their last digit?", "12", nil,
  function(code)
    return code:find("limit = 300", 1, true) and code:find("== 9", 1, true) and "12" or "error: ?"
  end)
local EXPENSES = { ["e.csv"] = "day,kind,amount\n1,a,3\n2,b,-4\n" }
asks("largest total", "Refunds appear as negative amounts in e.csv. Which kind has the largest " ..
  "total after refunds?", "b", EXPENSES, function(code)
    return code:find('row["kind"]', 1, true) and code:find('row["amount"]', 1, true)
      and "b: 10\na: 4" or "error: " .. code
  end)
local READINGS = { ["r.csv"] = "rack,power_w,status\nA1,10,OK\nA1,0,ERR\nA1,30,OK\nB1,5,OK\n" }
asks("gaps filled", "r.csv has readings marked ERR for rack A1. Replace each by the mean of the " ..
  "readings just before and just after it, rounded to two decimal places.", "20.0", READINGS,
  function(code)
    return code:find("[10, None, 30]", 1, true) and code:find(", 2))", 1, true) and "20.0"
      or "error: " .. code
  end)
asks("a failing tool", "What is the sum of the decimal digits of 3 to the power of 77?",
  "~the tool python failed (error: no python in this test)")
asks("a missing file", (HIGHEST:gsub("power%.csv", "gone.csv")), "~the tool read_file failed")
asks("no file at all", "What is the highest power reading of rack B2?", "~no file is attached")
asks("anything else", "What is the capital of France?", "~I am the demo model")

cases[#cases + 1] = { "without tools it says what it lacks", function()
  local reply = demo.reply({ messages = { { role = "user", content = energy(1, 2, 3, 4) } } })
  if not reply.text:find("needs the tool calculator", 1, true) then error(reply.text) end
end }
cases[#cases + 1] = { "the last step is the last", function()
  local reply = demo.reply({ messages = { { role = "system", content = react.format },
    { role = "user", content = energy(1, 2, 3, 4) .. "\n\nThis is your last step and no tool" } } })
  if not reply.text:find("Final Answer: I could not", 1, true) then error(reply.text) end
end }
cases[#cases + 1] = { "final_answer is used when it is offered", function()
  local reply = demo.reply({ tools = { { type = "function", ["function"] = { name = "calculator" } },
      { type = "function", ["function"] = { name = "final_answer" } } },
    messages = { { role = "user", content = energy(60, 30, 60, 30) },
      { role = "assistant", content = json.null }, { role = "tool", content = "60" } } })
  if reply.calls[1].name ~= "final_answer" or reply.calls[1].arguments.answer ~= "60" then
    error(json.encode(reply))
  end
end }
cases[#cases + 1] = { "odd requests are answered", function()
  for _, request in ipairs { {}, { messages = {} }, { messages = { {} } }, { tools = { 1, {} } },
      { messages = { { role = "user" } } }, { messages = { { role = "user", content = 7 } } } } do
    local reply = demo.reply(request)
    if type(reply.text) ~= "string" or reply.text == "" then error("no text") end
  end
end }

return cases
