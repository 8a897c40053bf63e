--- `ipw-agent test FILE` runs this file.
local test = require "ipw.test"
local dataset = test.dataset "my_dataset"

test.describe("my_dataset", function()
  test.it("has tasks", function()
    local tasks = dataset.load {}
    test.equal(#tasks, 10)
    test.equal(tasks[1].id, "sum-01")
  end)

  test.it("finds and scores an answer", function()
    local task = dataset.load({})[3]
    local answer = dataset.extract("The sum is 9.", task)
    test.equal(answer, "9")
    test.ok(dataset.score(answer, task))
    test.ok(not dataset.score("10", task))
  end)
end)
