--- Every Eval Ever: a run's result by the common schema of evaluation results (0.2.1), a JSON document a run.
local export = require "ipw.export"
local json = require "ipw.json"
local scores = require "ipw.export_scores"

local function slug(text) return (tostring(text):gsub("[^%w._-]", "_")) end

local function result(tally, name, score, metric, details)
  return { evaluation_name = name, score_details = { score = score, details = details }, metric_config = metric,
           source_data = { dataset_name = tally.config.dataset or "unknown", source_type = "other" },
           evaluation_timestamp = tally.when and export.date(tally.when) or nil }
end

local function results_of(tally)
  local out = json.list {}
  local accuracy = scores.accuracy(tally)
  if accuracy then
    out[1] = result(tally, "accuracy", accuracy, { evaluation_description = "resolved / scored queries",
      lower_is_better = false, score_type = "continuous", min_score = 0.0, max_score = 1.0 },
      { queries = tostring(tally.queries), scored = tostring(tally.scored), resolved = tostring(tally.resolved) })
  end
  for _, domain in ipairs(export.domains) do
    local joules, n = tally.joules[domain], tally.known[domain]
    local lo, hi, u = scores.bounds(tally, domain)
    if joules then
      out[#out + 1] = result(tally, domain .. "_joules_per_query", joules / n, {
        evaluation_description = ("energy of the %s domain per query, joules"):format(domain),
        lower_is_better = true, score_type = "continuous", min_score = 0.0 },
        { total_joules = json.encode(joules), total_joules_lo = lo and json.encode(lo),
          total_joules_hi = hi and json.encode(hi), total_joules_standard_uncertainty = u and json.encode(u),
          queries_measured = tostring(n), queries = tostring(tally.queries) })
    end
  end
  return out
end

return {
  name  = "eee",
  about = "Every Eval Ever: accuracy and joules per query of a run",
  loses = "Single queries, estimates and provenance of the joules, texts.",
  input = {
    { "organization", "string", "who evaluated", default = "unknown" },
    { "relationship", "string", "of the evaluator to the model's developer", default = "third_party",
      enum = { "first_party", "third_party", "collaborative", "other" } },
  },

  run = function(out, run) out.tally = scores.new(run) end,
  query = function(out, query) scores.add(out.tally, query) end,

  after = function(out, run)
    local tally, when = out.tally, tostring((out.tally.when or 0) // 1000000000)
    local model = tally.model or tally.config.model or "unknown"
    local program = run.manifest and run.manifest.program or {}
    out:json {
      schema_version = "0.2.1", retrieved_timestamp = when, evaluation_timestamp = when,
      evaluation_id = ("%s/%s/%s"):format(slug(tally.config.dataset or "unknown"), slug(model), when),
      source_metadata = { source_name = "ipw-agent", source_type = "evaluation_run",
                          source_organization_name = out.settings.organization,
                          evaluator_relationship = out.settings.relationship },
      model_info = { name = model, id = model, developer = model:match "^([^/]+)/" or "unknown" },
      eval_library = { name = "ipw-agent", version = program.version or "unknown",
                       additional_details = { agent = tally.config.agent or "unknown" } },
      evaluation_results = results_of(tally),
    }
  end,
}
