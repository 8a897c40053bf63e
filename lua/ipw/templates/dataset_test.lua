--- Run by `ipw-agent test FILE`.
local test = require "ipw.test"
local dataset = test.dataset "my_dataset"

test.describe("my_dataset", function()
  test.it("has records", function()
    local records = dataset.load {}
    test.equal(#records, 10)
    test.equal(records[1].id, "sum-01")
  end)

  test.it("finds and scores an answer", function()
    local record = dataset.load({})[3]
    local answer = dataset.extract("The sum is 9.", record)
    test.equal(answer, "9")
    test.ok(dataset.score(answer, record))
    test.ok(not dataset.score("10", record))
  end)
end)
