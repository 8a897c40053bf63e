--- `ipw-agent test FILE` runs this file. It has the model's replies, so it needs no server.
local test = require "ipw.test"

test.describe("my_agent", function()
  test.it("returns the model's answer", function()
    test.model { "It is 42." }
    test.equal(test.agent("my_agent", "What is the answer?"), "It is 42.")
  end)

  test.it("sends the results of tools to the model", function()
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
