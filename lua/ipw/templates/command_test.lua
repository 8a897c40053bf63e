--- Run by `ipw-agent test FILE`.
local runs = require "ipw.runs"
local test = require "ipw.test"
local command = test.command "my_command"

local function row(id, joules) return { id = id, energy = { cpu = joules and { j = joules } } } end

test.describe("my_command", function()
  test.it("prints the queries with the most joules", function()
    runs.read = function() return { not_lm = {}, rows = { row("a", 1), row("b", 30), row("c", 2) } } end
    local lines, status = command({ top = 2 }, { "runs/x" })
    test.equal(status, 0)
    test.equal(#lines, 2)
    test.matches(lines[1], "30.0 J  b")
  end)

  test.it("says when no joules are known", function()
    runs.read = function() return { not_lm = {}, rows = { row("a") } } end
    local lines, status = command({}, { "runs/x" })
    test.equal(status, 3)
    test.matches(lines[1], "no query of this run has known joules")
  end)
end)
