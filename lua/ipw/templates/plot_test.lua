--- Run by `ipw-agent test FILE`.
local test = require "ipw.test"
local draw = test.plot "my_plot"

test.describe("my_plot", function()
  test.it("draws each query that it knows", function()
    local svg, caption = draw { { seconds = 1, joules = 10 }, { seconds = 2, joules = 30 }, { seconds = 3 } }
    test.equal(select(2, svg:gsub("<circle", "")), 2)
    test.matches(caption, "each of 2 queries")
  end)

  test.it("says what is missing", function()
    test.raises(function() draw { { seconds = 1 } } end, "no query of the run has both")
  end)
end)
