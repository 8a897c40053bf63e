--- Run by `ipw-agent test FILE`.
local test = require "ipw.test"
local run = test.analysis "my_analysis"

test.describe("my_analysis", function()
  test.it("takes the medians", function()
    local result = run { { seconds = 1, joules = 10 }, { seconds = 2, joules = 30 }, { seconds = 3, joules = 20 } }
    test.equal(result, { joules = 20, seconds = 2, queries = 3 })
  end)

  test.it("leaves out joules that are not known", function()
    local result, lines = run { { seconds = 1 } }
    test.equal(result.joules, nil)
    test.matches(lines[1], "^\u{2013} J and 1 s")
  end)
end)
