--- `ipw-agent test FILE` runs this file. It starts nothing.
local program = require "ipw.program"
local script  = require "ipw.core.script"
local test    = require "ipw.test"

test.describe("my_program", function()
  local mine = script.load(assert(script.find("programs", "my_program")))

  test.it("gives the program the proxy's address", function()
    local words, environment = program.started(mine, { "task" }, "http://127.0.0.1:1/q/word")
    test.equal(words[#words], "task")
    local has = {}
    for _, variable in ipairs(environment) do has[variable] = true end
    test.equal(has["MY_PROGRAM_MODEL_URL=http://127.0.0.1:1/q/word/v1"], true)
    test.equal(has["MY_PROGRAM_KEY=key"], true)
  end)
end)
