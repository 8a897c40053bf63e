--- The YAML of a model repository's .eval_results folder on the Hugging Face hub.
local export = require "ipw.export"
local json = require "ipw.json"
local scores = require "ipw.export_scores"

return {
  name  = "eval-results",
  about = "YAML for .eval_results/ of a model on the Hugging Face hub",
  loses = "All but the accuracy; joules per query stand in the notes.",
  input = {
    { "dataset", "string", "the dataset's id on the hub", default = "" },
    { "task", "string", "the task's id in the dataset's eval.yaml", default = "" },
    { "url", "string", "where the run is published", default = "" },
  },

  begin = function(out) out.count = 0 end,
  run = function(out, run) out.tally = scores.new(run) end,
  query = function(out, query) scores.add(out.tally, query) end,

  after = function(out)
    local tally, set = out.tally, out.settings
    local accuracy, notes = scores.accuracy(tally), {}
    if not accuracy then return end
    out.count = out.count + 1
    for _, domain in ipairs(export.domains) do
      if tally.joules[domain] then
        local lo, hi = scores.bounds(tally, domain)
        notes[#notes + 1] = ("%s %s J%s in %d queries"):format(domain, json.encode(tally.joules[domain]),
          lo and hi and (" (%s to %s)"):format(json.encode(lo), json.encode(hi)) or "", tally.known[domain])
      end
    end
    local dataset = set.dataset ~= "" and set.dataset or tally.config.dataset or "unknown"
    out:write("- dataset:\n    id: ", json.encode(dataset), "\n")
    if set.task ~= "" then out:write("    task_id: ", json.encode(set.task), "\n") end
    out:write("  value: ", json.encode(100 * accuracy), "\n")
    if tally.when then out:write("  date: ", json.encode(export.date(tally.when):sub(1, 10)), "\n") end
    if set.url ~= "" then
      out:write("  source:\n    url: ", json.encode(set.url), "\n    name: \"ipw-agent\"\n")
    end
    out:write("  notes: ", json.encode(("%s, %d scored queries; energy: %s"):format(tally.config.agent or "agent",
      tally.scored, #notes > 0 and table.concat(notes, ", ") or "not measured")), "\n")
  end,

  finish = function(out) if out.count == 0 then out:write "[]\n" end end,
}
