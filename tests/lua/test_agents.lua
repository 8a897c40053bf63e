--- The agents plan and code; and that every agent answers on its last turn if the model does.
local test = require "ipw.test"
local equal, matches = test.equal, test.matches

local function contents(request)
  local out = {}
  for i, message in ipairs(request.messages) do out[i] = message.role .. ": " .. tostring(message.content) end
  return table.concat(out, "\n")
end

return {
  { "plan: a plan without tools, then calls, then the answer", function()
    local requests = test.model { "1. calculator\n2. answer",
      { calls = { { "calculator", { expression = "6 * 7" } } } }, "It is 42." }
    local answer = test.agent("plan", "What is 6 * 7?")
    equal(answer.answer, "It is 42.")
    equal(#requests, 3)
    equal(requests[1].tools, nil)
    matches(requests[1].messages[1].content, "Your first reply is the plan alone")
    matches(requests[1].messages[1].content, "calculator")
    matches(tostring(requests[2].tools), '"revise_plan"')
    matches(contents(requests[2]), "assistant: 1%. calculator\n2%. answer\nuser: Now act on your plan")
    matches(contents(requests[3]), "tool: 42")
  end },

  { "plan: a plan that no longer fits is replaced, and shown", function()
    local requests = test.model { "1. guess", { calls = { { "revise_plan", { plan = "1. compute" } } } }, "done" }
    equal(test.agent("plan", "How much?").answer, "done")
    matches(contents(requests[3]), "tool: The plan is replaced%.\nuser: Your plan stands at:\n1%. compute")
  end },

  { "plan: one turn is the answer; an empty reply is asked again", function()
    local requests = test.model { "at once" }
    equal(test.agent("plan", "How much?", { max_turns = 1 }).answer, "at once")
    matches(contents(requests[1]), "This is your last step")
    requests = test.model { "1. x", "", "now" }
    equal(test.agent("plan", "How much?").answer, "now")
    matches(contents(requests[3]), "Your reply was empty")
    test.model { "1. x", "" }
    equal(select(2, test.agent("plan", "How much?", { max_turns = 2 })), "empty")
  end },

  { "code: blocks run in one session, and call tools as functions", function()
    local requests = test.model { "First I compute.\n```python\nx = int(calculator(expression='6 * 7'))\nprint(x)\n```",
      "```py\nx + 1\n```", "```python\ncalculator('1 +')\n```", "It is 43." }
    equal(test.agent("code", "How much?").answer, "It is 43.")
    equal(#requests, 4)
    local all = contents(requests[4])
    matches(all, "user: Output:\n42\n")
    matches(all, "user: Output:\n43\n")
    matches(all, "RuntimeError: error: ")
    matches(requests[1].messages[1].content, "calculator: Computes")
  end },

  { "code: a block that ends the session loses its variables, and no more", function()
    local requests = test.model { "```python\nimport os\nos._exit(3)\n```", "```python\nx\n```", "gave up" }
    equal(test.agent("code", "How much?").answer, "gave up")
    matches(contents(requests[3]), "The code was ended: it ended with exit status 3%. The variables are lost%.")
    matches(contents(requests[3]), "NameError")
  end },

  { "code: the last turn runs nothing; what stands around a block is the answer", function()
    local requests = test.model { "I think it is 5.\n```python\nprint(1)\n```" }
    matches(test.agent("code", "How much?", { max_turns = 1 }).answer, "^I think it is 5%.%s*$")
    matches(contents(requests[1]), "no code is run any more")
    test.model { "```python\nprint(1)\n```" }
    equal(select(2, test.agent("code", "How much?", { max_turns = 1 })), "max_turns")
    test.model { "```python\nprint(", { text = "5" } }
    equal(test.agent("code", "How much?", { max_turns = 2 }).answer, "5")
  end },

  { "code: final_answer ends it", function()
    test.model { "```python\nfinal_answer(answer='seven')\n```" }
    equal(test.agent("code", "How much?", { tools = { "final_answer" } }), { answer = "seven", source = "tool" })
  end },

  { "the last turn: a call that nobody offered still answers, by its text or by final_answer", function()
    local call = { { "calculator", { expression = "1" } } }
    for _, agent in ipairs { "tools", "plan" } do
      local function last(reply, tools)
        test.model { agent == "plan" and "1. x" or { calls = call }, reply }
        return test.agent(agent, "How much?", { max_turns = 2, tools = tools or { "calculator" } })
      end
      equal(last { text = "It is 1.", calls = call }, { answer = "It is 1.", source = "last_turn" }, agent)
      equal(last({ calls = { { "final_answer", { answer = "one" } } } }, { "calculator", "final_answer" }),
        { answer = "one", source = "tool" }, agent)
      equal({ last { calls = call } }, { nil, "max_turns" }, agent)
    end
    test.model { 'Thought: t\nAction: final_answer\nAction Input: {"answer": "one"}' }
    equal(test.agent("react", "How much?", { max_turns = 1, tools = { "final_answer" } }),
      { answer = "one", source = "tool" })
  end },
}
