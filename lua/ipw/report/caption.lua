--- ipw.report.caption: what stands under a figure: whole sentences that name the runs, their machine, how joules were
--- shared, and what the sensors leave open.
local headline = require "ipw.report.headline"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"
local stats = require "ipw.stats"

local caption = {}

--- What the sensors leave open: of all queries together, and of one of them (the median); "" where it is not known.
local function bounds(run)
  local totals, lo, hi, u, wide = (run.summary.totals or {}).bounds or {}, 0, 0, 0, {}
  for _, domain in ipairs(run.domains) do
    local b = totals[domain .. "_energy_joules"] or {}
    lo, hi, u = lo and b.lo and lo + b.lo, hi and b.hi and hi + b.hi, u and b.u and u + b.u
  end
  for _, q in ipairs(run.queries) do
    local e = q.energy
    if e.joules and e.joules > 0 and e.lo and e.hi then
      wide[#wide + 1] = math.max(e.hi - e.joules, e.joules - e.lo) / e.joules
    end
  end
  if #run.domains == 0 or not lo or not hi or #wide == 0 then return "" end
  return (" The sensors leave all its queries between %s and %s J%s, and one of them within \u{B1}%s (median)."):format(
    numbers.plain(lo), numbers.plain(hi), u and (" (u %s J)"):format(numbers.plain(u, 2)) or "",
    numbers.share(stats.quantile(wide, 0.5), 1))
end

--- One run: its agent, model, data, date and machine, and the rule by which joules were shared.
local function of_run(run, name)
  local config, joules = run.manifest.config or {}, #run.domains > 0
  local machine, date = headline.machine(run), headline.date(run)
  return ("%s: %s, %s of %s by %s%s%s.%s%s"):format(name, headline.model(run),
    numbers.count(#run.queries, "query", "queries"), headline.dataset(run),
    (run.summary.run or {}).agent or config.agent or "an agent", date and ", " .. date or "",
    machine ~= "" and ", on " .. machine or "",
    joules and (" Joules are of %s; what queries in flight used together is shared by the rule \u{201C}%s\u{201D}.")
      :format(palette.devices(run.domains), config.share or "phase") or " No joules were measured.", bounds(run))
end

--- The caption of a kind, and what is said of each run.
---@param text string
---@param runs table[]
---@return string
function caption.whole(text, runs)
  local out = { text }
  for i, run in ipairs(runs) do out[i + 1] = of_run(run, #runs == 1 and "The run" or run.name) end
  return table.concat(out, " ")
end

return caption
