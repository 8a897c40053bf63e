--- A Hugging Face dataset on disk (load_from_disk), with the 25 columns of the newer original's hf_dataset.
local arrow = require "ipw.arrow"
local export = require "ipw.export"
local json = require "ipw.json"

local fields = {
  { "query_id", "string" }, { "workload_type", "string" }, { "query_text", "string" }, { "response_text", "string" },
  { "num_turns", "int64" }, { "total_input_tokens", "int64" }, { "total_output_tokens", "int64" },
  { "total_tool_calls", "int64" }, { "total_wall_clock_s", "float64" }, { "total_gpu_energy_joules", "float64" },
  { "total_cpu_energy_joules", "float64" }, { "total_tokens", "int64" }, { "total_cost_usd", "float64" },
  { "avg_gpu_power_watts", "float64" }, { "avg_cpu_power_watts", "float64" },
  { "throughput_tokens_per_sec", "float64" }, { "energy_per_token_joules", "float64" },
  { "query_mbu_avg_pct", "float64" }, { "query_mbu_max_pct", "float64" }, { "completed", "bool" },
  { "timed_out", "bool" }, { "is_resolved", "bool" }, { "unscorable_reason", "string" },
  { "score_metadata_json", "string" }, { "trace_json", "string" },
}

return {
  name   = "hf",
  about  = "Hugging Face dataset on disk (load_from_disk), 25 columns",
  loses  = "As columns: turns, spans, bounds, DRAM and machine joules; trace_json has the complete query.",
  writes = "folder",

  begin = function(out) out.names, out.set = {}, arrow.open(out, "", fields) end,

  run = function(out, run) out.names[#out.names + 1] = run.name end,

  query = function(out, query)
    local row = {}
    for _, f in ipairs(fields) do row[f[1]] = query[f[1]] end
    row.total_gpu_energy_joules, row.total_cpu_energy_joules = export.joules(query, "gpu"), export.joules(query, "cpu")
    row.avg_gpu_power_watts, row.avg_cpu_power_watts = query.query_gpu_power_avg_watts, query.query_cpu_power_avg_watts
    row.energy_per_token_joules = query.energy_per_output_token_joules
    row.score_metadata_json = json.encode(query.score_metadata or {})
    row.trace_json = query.line
    arrow.add(out.set, row, #query.line)
  end,

  finish = function(out) arrow.close(out.set, ("%016x"):format(export.hash(table.concat(out.names, "/")))) end,
}
