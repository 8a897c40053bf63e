--- Run by `ipw-agent test FILE`.
local test = require "ipw.test"
local write = test.export "my_export"

test.describe("my_export", function()
  test.it("writes a row a query", function()
    test.equal(write { { query_id = "q1", total_wall_clock_s = 1.5, energy = { cpu = { joules = 12.25 } } } },
      "query_id,seconds,joules\r\nq1,1.5,12.25\r\n")
  end)

  test.it("leaves out joules that are not known", function()
    test.equal(write { { query_id = "q1", total_wall_clock_s = 1.5 } }, "query_id,seconds,joules\r\nq1,1.5,\r\n")
  end)
end)
