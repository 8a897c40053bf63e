-- What react.parse makes of replies as models write them.
local react = require "ipw.react"
local json = require "ipw.json"

local TOOLS = {
  { name = "calculator", input = { { "expression", "string", "" } } },
  { name = "read_file", input = { { "path", "string", "" },
    { "start", "integer", "", default = 1 } } },
  { name = "python", input = { { "code", "string", "" },
    { "seconds", "number", "", default = 10 } } },
  { name = "move", input = { { "from", "string", "" }, { "to", "string", "" } } },
  { name = "count", input = { { "n", "integer", "" } } },
  { name = "clock", input = {} },
  { name = "pick", input = { { "of", "array", "" } } },
}

local function parse(text) return react.parse(text, TOOLS) end

local function equal(got, want, what)
  got, want = json.encode(got), json.encode(want)
  if got ~= want then error(("%s: got %s, want %s"):format(what, got, want), 3) end
end

--- A reply that asks for these actions and nothing else.
local function actions(text, want)
  local step = parse(text)
  if step.problem then error("problem: " .. step.problem.message, 2) end
  equal(#step.actions, #want, "number of actions")
  for i, action in ipairs(want) do
    equal(step.actions[i].name, action[1], "name " .. i)
    equal(step.actions[i].input, action[2], "input " .. i)
  end
  if step.final then error("final: " .. step.final, 2) end
  return step
end

local function final(text, want)
  local step = parse(text)
  if step.problem then error("problem: " .. step.problem.message, 2) end
  equal(#step.actions, 0, "number of actions")
  equal(step.final, want, "final")
end

local function malformed(text, code, quoted)
  local step = parse(text)
  if not step.problem then error("no problem found", 2) end
  equal(step.problem.code, code, "code")
  if quoted and not (step.problem.message .. (step.problem.quote or "")):find(quoted, 1, true) then
    error(("%q is not in %q"):format(quoted, step.problem.message), 2)
  end
end

local calc = { { "calculator", { expression = "2 + 2" } } }
local cases = {}
local function case(name, fn) cases[#cases + 1] = { name, fn } end

-- one action in many dresses
local dresses = {
  ["plain"] = 'Thought: t\nAction: calculator\nAction Input: {"expression": "2 + 2"}',
  ["no thought"] = 'Action: calculator\nAction Input: {"expression": "2 + 2"}',
  ["upstream's labels"] = 'THOUGHT: t\nACTION: calculator\nINPUT: {"expression": "2 + 2"}',
  ["bold, colon inside"] = '**Thought:** t\n**Action:** calculator\n' ..
    '**Action Input:** {"expression": "2 + 2"}',
  ["bold, colon outside"] = '**Action**: calculator\n**Action Input**: {"expression": "2 + 2"}',
  ["headings"] = '### Action: calculator\n### Action Input:\n{"expression": "2 + 2"}',
  ["list marks"] = '- Action: calculator\n- Action Input: {"expression": "2 + 2"}',
  ["lower case"] = 'thought: t\naction: calculator\naction input: {"expression": "2 + 2"}',
  ["underscore"] = 'Action: calculator\nAction_Input: {"expression": "2 + 2"}',
  ["no space"] = 'Action:calculator\nActionInput:{"expression":"2 + 2"}',
  ["space before the colon"] = 'Action : calculator\nAction Input : {"expression": "2 + 2"}',
  ["indented"] = '  Action: calculator\n  Action Input: {"expression": "2 + 2"}',
  ["numbered"] = 'Thought 1: t\nAction 1: calculator\nAction Input 1: {"expression": "2 + 2"}',
  ["wide colon"] = 'Action\u{FF1A} calculator\nAction Input\u{FF1A} {"expression": "2 + 2"}',
  ["CRLF"] = 'Action: calculator\r\nAction Input: {"expression": "2 + 2"}\r\n',
  ["over lines"] = 'Action: calculator\nAction Input: {\n  "expression":\n    "2 + 2"\n}\n',
  ["fenced json"] = 'Action: calculator\nAction Input:\n```json\n{"expression": "2 + 2"}\n```',
  ["fenced in the line"] = 'Action: calculator\nAction Input: ```{"expression": "2 + 2"}```',
  ["name in backticks"] = 'Action: `calculator`\nAction Input: {"expression": "2 + 2"}',
  ["name in bold"] = 'Action: **calculator**\nAction Input: {"expression": "2 + 2"}',
  ["name in brackets"] = 'Action: [calculator]\nAction Input: {"expression": "2 + 2"}',
  ["name with a stop"] = 'Action: calculator.\nAction Input: {"expression": "2 + 2"}',
  ["name in the next line"] = 'Action:\ncalculator\nAction Input: {"expression": "2 + 2"}',
  ["text after"] = 'Action: calculator\nAction Input: {"expression": "2 + 2"} and then I see.',
  ["lines after"] = 'Action: calculator\nAction Input: {"expression": "2 + 2"}\nI will wait.',
  ["bare"] = 'Action: calculator\nAction Input: 2 + 2',
  ["bare, in quotes"] = 'Action: calculator\nAction Input: "2 + 2"',
  ["bare, named"] = 'Action: calculator\nAction Input: expression: 2 + 2',
  ["bare, in a fence"] = 'Action: calculator\nAction Input:\n```\n2 + 2\n```',
  ["called"] = 'Action: calculator("2 + 2")',
  ["called by name"] = 'Action: calculator(expression="2 + 2")',
  ["called with an object"] = 'Action: calculator({"expression": "2 + 2"})',
  ["in one line"] = 'Action: calculator {"expression": "2 + 2"}',
  ["Python's quotes"] = "Action: calculator\nAction Input: {'expression': '2 + 2'}",
  ["trailing comma"] = 'Action: calculator\nAction Input: {"expression": "2 + 2",}',
  ["thinking first"] = '<think>Action: x\nFinal Answer: 3</think>\nAction: calculator\n' ..
    'Action Input: {"expression": "2 + 2"}',
  ["as one object"] = 'Action:\n```json\n{"action": "calculator", ' ..
    '"action_input": {"expression": "2 + 2"}}\n```',
  ["as one object, bare"] = 'Action: {"name": "calculator", "arguments": "2 + 2"}',
  ["whole reply fenced"] = '```\nThought: t\nAction: calculator\n' ..
    'Action Input: {"expression": "2 + 2"}\n```',
}
local names = {}
for name in pairs(dresses) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  case("one action: " .. name, function() actions(dresses[name], calc) end)
end

case("braces, quotes and labels inside strings", function()
  actions('Action: python\nAction Input: {"code": "d = {\\"a\\": \\"}\\"}\\nprint(\'{\')"}',
    { { "python", { code = 'd = {"a": "}"}\nprint(\'{\')' } } })
  actions('Action: python\nAction Input: {"code": "print(1)\nAction: none\nObservation: 3\nx = 2"}',
    { { "python", { code = "print(1)\nAction: none\nObservation: 3\nx = 2" } } })
end)
case("nested objects that end in two braces", function()
  actions('Action: move\nAction Input: {"from": {"a": {"b": 1}}, "to": [1, {"c": 2}]}\n}',
    { { "move", { from = { a = { b = 1 } }, to = { 1, { c = 2 } } } } })
end)
case("an apostrophe in a string in Python's quotes", function()
  actions([[Action: calculator
Action Input: {'expression': "it's", 'x': True, 'y': None}]],
    { { "calculator", { expression = "it's", x = true, y = json.null } } })
end)
case("stray backslashes", function()
  actions([[Action: python
Action Input: {"code": "re.match('\d+', s)"}]], { { "python", { code = [[re.match('\d+', s)]] } } })
end)
case("code in a fence becomes the single required argument", function()
  actions("Action: python\nAction Input:\n```python\nx = {1: 2}\nprint(x)\n```\nThat is all.",
    { { "python", { code = "x = {1: 2}\nprint(x)" } } })
end)
case("bare code over lines", function()
  actions("Action: python\nAction Input: import math\nprint(math.pi)",
    { { "python", { code = "import math\nprint(math.pi)" } } })
end)
case("bare values of other types", function()
  actions("Action: count\nAction Input: 17", { { "count", { n = 17 } } })
  actions("Action: calculator\nAction Input: 17", { { "calculator", { expression = "17" } } })
  actions('Action: pick\nAction Input: ["a", "b"]', { { "pick", { of = { "a", "b" } } } })
  actions("Action: calculator\nAction Input: [1, 2]", { { "calculator", { expression = "[1, 2]" } } })
end)
case("a tool without arguments", function()
  actions("Action: clock", { { "clock", {} } })
  actions("Action: clock\nAction Input:", { { "clock", {} } })
  actions("Action: clock\nAction Input: {}", { { "clock", {} } })
  actions("Action: clock\nAction Input: None", { { "clock", {} } })
  actions("Action: clock()", { { "clock", {} } })
end)
case("an unknown tool is the kit's business", function()
  actions('Action: search\nAction Input: {"q": "x"}', { { "search", { q = "x" } } })
  actions("Action: search\nAction Input: words", { { "search", { input = "words" } } })
end)

case("several pairs in order", function()
  actions('Thought: a\nAction: calculator\nAction Input: {"expression": "1"}\nThought: b\n' ..
    'Action: read_file\nAction Input: {"path": "x"}\nAction: clock',
    { { "calculator", { expression = "1" } }, { "read_file", { path = "x" } }, { "clock", {} } })
end)
case("two actions, then their two inputs", function()
  actions('Action: calculator\nAction: read_file\nAction Input: 1\nAction Input: x',
    { { "calculator", { expression = "1" } }, { "read_file", { path = "x" } } })
end)

case("an invented observation is cut off, with what follows", function()
  local step = actions('Thought: t\nAction: calculator\nAction Input: {"expression": "2 + 2"}\n' ..
    'Observation: 4\nThought: so\nFinal Answer: 4', calc)
  equal(step.cut, true, "cut")
  equal(step.kept, 'Thought: t\nAction: calculator\nAction Input: {"expression": "2 + 2"}', "kept")
  equal(step.thought, "t", "thought")
end)
case("an answer given before the result does not count", function()
  actions('Action: calculator\nAction Input: {"expression": "2 + 2"}\nFinal Answer: 4', calc)
end)

case("final answers", function()
  final("Thought: done\nFinal Answer: 42", "42")
  final("final answer: 42", "42")
  final("FINAL ANSWER: 42", "42")
  final("FINAL_ANSWER: 42", "42")
  final("**Final Answer:** 42", "42")
  final("**Final Answer: 42**", "42")
  final("**Final Answer**: **42**", "**42**")
  final("## Final Answer\n\n42", "42")
  final("**Final Answer**\n42", "42")
  final("Final Answer:\n42", "42")
  final("Final Answer: 4 * 5 ** 2", "4 * 5 ** 2")
  final("```\nThought: x\nFinal Answer: 42\n```", "42")
  final("Action: None\nFinal Answer: 42", "42")
end)
case("a final answer goes to the end", function()
  final("Thought: x\nFinal Answer: one\ntwo\n\nthree\n", "one\ntwo\n\nthree")
  final("Final Answer: one\nAction: rest", "one\nAction: rest")
end)
case("the words in a thought are no answer", function()
  malformed("Thought: I will soon give the Final Answer: 42, I think.", "no_label", "Final Answer")
  actions('Thought: then comes the Final Answer: maybe.\nAction: calculator\nAction Input: 2 + 2',
    calc)
end)
case("an observation without an action before it is passed over", function()
  final("Observation: the file says 3\nThought: so\nFinal Answer: 3", "3")
end)

case("malformed replies say what was missing", function()
  malformed("", "empty")
  malformed("  \n", "empty")
  malformed("It is 42.", "no_label", "It is 42.")
  malformed("Thought: hm", "no_label")
  malformed("Thought: t\nAction: calculator", "missing_input", "Action: calculator")
  malformed("Action: calculator\nAction Input:", "missing_input", "calculator")
  malformed('Action Input: {"expression": "1"}', "missing_action", '"expression"')
  malformed("Action:\nAction Input: 3", "missing_action")
  malformed('Action: calculator\nAction Input: {"expression": "2 + 2"', "bad_arguments", "not closed")
  malformed('Action: calculator\nAction Input: {"expression" "2 + 2"}', "bad_arguments",
    'not valid JSON')
  malformed("Action: move\nAction Input: here and there", "bad_arguments", '"from", "to"')
  malformed("Action: calculator\nAction: python\nAction Input: 1", "missing_input", "python")
  malformed("Final Answer:", "empty_answer")
end)
case("the hint quotes and shows the format", function()
  local wrong = parse("The answer is 42.").problem
  local text = react.hint(wrong, true)
  for _, part in ipairs { "The answer is 42.", "Action Input:", "Final Answer:", "cut off" } do
    if not text:find(part, 1, true) then error("no " .. part) end
  end
  local long = parse(("\u{E9}"):rep(500)).problem
  if #long.quote > 170 or not utf8.len(long.quote) then error("quote: " .. long.quote) end
end)
case("hostile replies end soon", function()
  parse(("{"):rep(20000))
  parse("Action: calculator\nAction Input: " .. ("{"):rep(20000))
  parse(("Action: calculator\n"):rep(2000))
  parse("Action: calculator\nAction Input: {" .. ('"a":{'):rep(5000))
  parse(("*"):rep(20000))
  parse("Action: " .. ("("):rep(5000))
  parse("\0\xFF\xFE" .. ("Action:\n"):rep(100))
end)

return cases
