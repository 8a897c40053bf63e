--- An SQLite file: queries, turns, spans, devices, samples and the ledger, with indexes and views.
local export = require "ipw.export"
local rows = require "ipw.export_rows"

--- A view of sums; D_known is the number of rows that the sum of a domain is of.
local function view(name, group, of, from)
  local sums = {}
  for _, domain in ipairs(export.domains) do
    sums[#sums + 1] = ("sum(%s.%s_joules) AS %s_joules, count(%s.%s_joules) AS %s_known"):format(of, domain, domain,
      of, domain, domain)
  end
  return ("CREATE VIEW %s AS SELECT %s, count(*) AS n, sum(%s.end_s - %s.start_s) AS seconds, %s FROM %s GROUP BY %s;")
    :format(name, group, of, of, table.concat(sums, ", "), from, group)
end

local finish = [[
CREATE INDEX queries_by_number ON queries(query);
CREATE INDEX turns_by_query ON turns(query, turn_index);
CREATE INDEX spans_by_query ON spans(query, turn_index);
CREATE INDEX spans_by_name ON spans(kind, name);
CREATE INDEX samples_by_channel ON samples(run, channel, t_ns);
CREATE VIEW joules_by_query AS SELECT q.run, q.query_id, q.epoch, q.cpu_joules, q.dram_joules, q.gpu_joules,
  q.machine_joules, sum(t.cpu_joules) AS cpu_turn_joules, sum(t.dram_joules) AS dram_turn_joules,
  sum(t.gpu_joules) AS gpu_turn_joules, sum(t.machine_joules) AS machine_turn_joules
  FROM queries q LEFT JOIN turns t USING (query) GROUP BY query;
]] .. view("joules_by_tool", "spans.name", "spans", "spans WHERE spans.kind = 'tool'")
  .. view("joules_by_span_kind", "spans.kind", "spans", "spans")
  .. view("joules_by_model", "turns.model", "turns", "turns")

--- Accounts of the ledger: each has its bounds beside it.
local accounts = { "total_j", "queries_j", "idle_j", "warmup_j", "wasted_j" }

return {
  name   = "sqlite",
  about  = "an SQLite file: queries, turns, spans, samples, views",
  loses  = "Texts of the conversation, events, coverage of the joules.",
  writes = "database",
  input  = { { "samples", "boolean", "with the power readings", default = true } },

  begin = function(out)
    out.count = 0
    for _, name in ipairs { "runs", "queries", "turns", "spans" } do out:table(name, rows.columns[name]) end
    out:table("devices", { "query INTEGER", "domain TEXT", "device TEXT", "joules REAL", "lo REAL", "hi REAL",
                           "u REAL", "provenance TEXT", "estimate_joules REAL" })
    local columns = { "run TEXT", "domain TEXT", "difference_j REAL", "reason TEXT" }
    for _, key in ipairs(accounts) do
      for _, more in ipairs { "", "_lo", "_hi", "_u" } do columns[#columns + 1] = key .. more .. " REAL" end
    end
    out:table("ledger", columns)
    out:table("samples", { "run TEXT", "segment INTEGER", "t_ns INTEGER", "wall_ns INTEGER", "channel TEXT",
                           "domain TEXT", "kind TEXT", "unit TEXT", "value INTEGER", "watts REAL" })
  end,

  run = function(out, run)
    local ledger = run.summary and run.summary.ledger or {}
    for _, domain in ipairs(export.domains) do
      local of = ledger[domain]
      if of then
        local row = { run = run.name, domain = domain, difference_j = of.difference_j, reason = of.reason }
        for _, key in ipairs(accounts) do
          row[key] = of[key]
          if of[key] then row[key .. "_lo"], row[key .. "_hi"], row[key .. "_u"] = export.bounds(of, key) end
        end
        out:insert("ledger", row)
      end
    end
  end,

  query = function(out, query)
    local number = out.count + 1
    out.count = number
    out:insert("queries", rows.query(query, number))
    rows.turns(query, number, function(row) out:insert("turns", row) end)
    rows.spans(query, number, function(row) out:insert("spans", row) end)
    for _, domain in ipairs(export.domains) do
      local figure = query.energy and query.energy[domain] or {}
      for device, part in pairs(figure.devices or {}) do
        local of = export.figure(part)
        out:insert("devices", { query = number, domain = domain, device = device, joules = of.joules, lo = of.lo,
                                hi = of.hi, u = of.u, estimate_joules = of.estimate,
                                provenance = of.provenance or of.joules and figure.provenance })
      end
    end
  end,

  after = function(out, run)
    out:insert("runs", rows.run(run))
    if not out.settings.samples then return end
    for t_ns, channel, value, watts, segment in run:readings() do
      out:insert("samples", { run = run.name, segment = segment, t_ns = t_ns, wall_ns = run:wall_ns(t_ns, segment),
                              channel = channel.name, domain = channel.domain, kind = channel.kind,
                              unit = channel.unit, value = value, watts = watts })
    end
  end,

  finish = function(out) out:sql(finish) end,
}
