--- Run by `ipw-agent test FILE`.
local test = require "ipw.test"
local section = test.section "my_section"

test.describe("my_section", function()
  test.it("groups by turns", function()
    local heading, markup, lines = section { { turns = 1, joules = 10 }, { turns = 3, joules = 30 }, { turns = 1 } }
    test.equal(heading, "Queries took 1 to 3 turns")
    test.matches(markup, "30.0")
    test.equal(lines[1], "1 turns: 2 queries, 10.0 J each")
  end)
end)
