--- `ipw-agent test FILE` runs this file, inside the real runtime.
local test = require "ipw.test"
local call = test.tool "my_tool"

test.describe("my_tool", function()
  test.it("answers", function()
    local text, ok = call { word = "hello" }
    test.ok(ok)
    test.equal(text, "hello hello")
  end)

  test.it("returns the reason of a failure", function()
    local text, ok = call { word = "" }
    test.ok(not ok)
    test.matches(text, "word must not be empty")
  end)

  test.it("has its arguments checked", function()
    test.matches(call { word = "hello", times = 11 }, "at most 10")
    test.matches(call {}, "'word' is missing")
  end)
end)
