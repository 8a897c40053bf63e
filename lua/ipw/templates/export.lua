--- my_export: say here which program reads it.
--
-- `ipw-agent export RUN --format my_export` runs it; docs/trace-format.md has the fields of a query.
-- What a run does not know is nil here: write that as "unknown", never as 0.
local export = require "ipw.export"

return {
  name  = "my_export",
  about = "one CSV row a query: id, seconds, joules",
  loses = "Turns, spans, bounds and provenance of the joules, texts.",

  writes = "file", -- or "folder" (out:file(NAME) begins a file) or "database" (out:table, out:insert)

  -- Settings, declared as a tool's arguments: --set domain=gpu
  input = {
    { "domain", "string", "domain of the joules", default = "cpu", enum = { "cpu", "dram", "gpu", "machine" } },
  },

  -- Before everything else. Also: run(out, run) before a run's queries, after(out, run) after them,
  -- finish(out) at the end.
  begin = function(out)
    out:write(export.csv_row({ "query_id", "seconds", "joules" }, 3))
  end,

  -- Each query; query:events() has its events, query:calls() its model calls and tool calls.
  query = function(out, query)
    out:write(export.csv_row({ query.query_id, query.total_wall_clock_s,
                               export.joules(query, out.settings.domain) }, 3))
  end,
}
