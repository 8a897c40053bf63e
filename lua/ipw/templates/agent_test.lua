--- Run by `ipw-agent test FILE`. The model's replies are written here, so that no server is needed.
local test = require "ipw.test"

test.describe("my_agent", function()
  test.it("hands on the model's answer", function()
    test.model { "It is 42." }
    test.equal(test.agent("my_agent", "What is the answer?"), "It is 42.")
  end)

  test.it("gives the model what its tools say", function()
    local requests = test.model {
      { calls = { { "calculator", { expression = "6 * 7" } } } },
      "42",
    }
    test.equal(test.agent("my_agent", "What is 6 * 7?"), "42")
    local last = requests[2].messages
    test.equal(last[#last].content, "42")
  end)

  test.it("stops at its last turn", function()
    local again = { calls = { { "calculator", { expression = "1" } } } }
    test.model { again, again }
    local answer, why = test.agent("my_agent", "And again?", { max_turns = 2 })
    test.equal(answer, nil)
    test.equal(why, "max_turns")
  end)
end)
