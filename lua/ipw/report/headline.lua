--- ipw.report.headline: the title, what was run, how the joules were obtained, and what spoils the run.
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"
local palette = require "ipw.palette"

local headline = {}

local WIDE = 0.1 -- half of the sensor's bounds: beyond this part, a title has them

local domain_names = palette.domain

headline.devices = palette.devices

--- The machine that was measured: "2 x NVIDIA H200 (driver 550), AMD EPYC 9654 (2 sockets, 192 cores), a virtual
--- machine"; "" where nothing of it is known.
function headline.machine(run)
  local hardware, out = run.summary.hardware or run.manifest.hardware or {}, {}
  if hardware.gpu then
    local n = hardware.gpus_read or hardware.gpu_count or 1
    out[1] = (n > 1 and ("%d \u{D7} "):format(n) or "") .. hardware.gpu ..
      (hardware.driver and (" (driver %s)"):format(hardware.driver) or "")
  end
  if hardware.cpu then
    local inside = {}
    if (hardware.cpu_sockets or 1) > 1 then inside[1] = ("%d sockets"):format(hardware.cpu_sockets) end
    if hardware.cpu_cores then inside[#inside + 1] = numbers.count(hardware.cpu_cores, "core") end
    if hardware.governor then inside[#inside + 1] = "governor " .. hardware.governor end
    out[#out + 1] = hardware.cpu .. (#inside > 0 and (" (%s)"):format(table.concat(inside, ", ")) or "")
  end
  if hardware.virtualised then out[#out + 1] = "a virtual machine" end
  return table.concat(out, ", ")
end

--- The page's line on machine and server, as a sentence; "" where nothing is known.
local function machine_line(run)
  local machine, config = headline.machine(run), run.manifest.config or {}
  local kernel = (run.summary.hardware or {}).kernel
  local sampled = config.telemetry_interval and #run.domains > 0
    and (" Sensors were read every %s ms."):format(numbers.plain(config.telemetry_interval * 1000)) or ""
  local server = config.client_base_url and (" The model answered at %s."):format(config.client_base_url) or ""
  if machine == "" then return server .. sampled end
  return (" On %s%s.%s%s"):format(machine, kernel and ", Linux " .. kernel or "", server, sampled)
end

local function scored(run)
  local totals = run.summary.totals or {}
  return totals.resolved or 0, (totals.resolved or 0) + (totals.unresolved or 0)
end

function headline.model(run)
  local config, facts = run.manifest.config or {}, run.summary.run or {}
  local model = facts.model or config.model or "the model"
  if model ~= "any" then return model end -- a measured program chose for itself
  local called = {}
  for name in pairs(run.summary.models or {}) do called[#called + 1] = name end
  return #called == 1 and called[1] or #called > 1 and "several models" or facts.agent or "the program"
end

function headline.dataset(run) return (run.summary.run or {}).dataset or "the dataset" end

--- The joules for each solved task, with the interval over queries: value, lo, hi; or nil and why not.
function headline.per_solved(run)
  local efficiency, right, n = run.summary.efficiency or {}, scored(run)
  if n == 0 then return nil, "not defined: no reference answers" end
  if right == 0 then return nil, "not defined: none solved" end
  local value = efficiency.joules_per_correct_answer
  if not value then return nil, "not known" end
  local ipj = ((run.summary.repeats or {}).metrics or {}).intelligence_per_joule
  if ipj and ipj.lo and ipj.lo > 0 and ipj.mean and math.abs(1 / ipj.mean / value - 1) < 1e-6 then
    return value, 1 / ipj.hi, 1 / ipj.lo
  end
  return value
end

--- What the sensors leave open of an efficiency, in words; nil: it is not known, or within 10 %.
function headline.open_by_sensor(run, name)
  local efficiency = run.summary.efficiency or {}
  local b, value = (efficiency.bounds or {})[name], efficiency[name]
  if not b or not value or not b.lo or not b.hi or b.hi - b.lo <= 2 * WIDE * value then return nil end
  return numbers.between(b.lo, b.hi)
end

--- The title: a sentence.
---@param run table
---@return string
function headline.title(run)
  local right, n = scored(run)
  local model, dataset = headline.model(run), headline.dataset(run)
  local queries = run.n_queries or #run.queries
  local per_solved, lo, hi = headline.per_solved(run)
  if n > 0 and right == 0 then return ("%s solved none of %s %s questions"):format(model, numbers.at(n, 0), dataset) end
  if n > 0 then
    local text = ("%s solved %s of %s %s questions"):format(model, numbers.at(right, 0), numbers.at(n, 0), dataset)
    if per_solved then
      local open = headline.open_by_sensor(run, "joules_per_correct_answer")
      return text .. (", at %s J%s for each one solved"):format((numbers.interval(per_solved, lo, hi)),
        open and " (" .. open .. ")" or "")
    end
    return text .. "; " .. (#run.domains == 0 and "joules were not measured" or "not all joules are known")
  end
  local joules = ((run.summary.repeats or {}).metrics or {}).joules or {}
  local text = ("%s answered %s of %s"):format(model, numbers.at((run.summary.totals or {}).completed or 0, 0),
    numbers.count(queries, dataset .. " query", dataset .. " queries"))
  if joules.mean then return text .. (", at %s J each"):format((numbers.interval(joules.mean, joules.lo,
    joules.hi))) end
  return text
end

local months = { "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                 "November", "December" }

function headline.date(run)
  local year, month, day, time = (run.manifest.started_at or ""):match "^(%d+)-(%d+)-(%d+)T(%d+:%d+)"
  if not year then return nil end
  return ("%d %s %s, %s UTC"):format(tonumber(day), months[tonumber(month)], year, time)
end

--- How many queries were in flight: "2 at a time". Of clients that came by themselves there was no limit.
function headline.at_a_time(config, say)
  local n = config.concurrency or 1
  return n >= 100000 and "as clients came" or (say and say(n) or numbers.at(n, 0)) .. " at a time"
end

local function tool_name(path) return (path:match "([^/]+)%.lua$" or path) end

--- "What was run", as a list of sentences; mark(text) sets what matters.
---@return string
function headline.what(run, mark)
  local config = run.manifest.config or {}
  local inside = {}
  if config.max_turns then inside[#inside + 1] = ("up to %d turns"):format(config.max_turns) end
  local tools = {}
  for i, tool in ipairs(config.tools or {}) do tools[i] = mark(tool_name(tool), true) end
  if #tools > 0 then inside[#inside + 1] = table.concat(tools, ", ") end
  local epochs = config.epochs or 1
  local text = ("Agent %s%s on %s of %s, %s, %s%s. Model %s%s%s."):format(
    mark((run.summary.run or {}).agent or config.agent or "?"),
    #inside > 0 and " (" .. table.concat(inside, "; ") .. ")" or "",
    numbers.count(#run.queries, "query", "queries"), mark(headline.dataset(run)),
    headline.at_a_time(config, numbers.word), epochs == 1 and "one pass" or numbers.word(epochs) .. " passes",
    headline.date(run) and ", " .. headline.date(run) or "", mark(headline.model(run)),
    (config.temperature and (", temperature %s"):format(numbers.plain(config.temperature, 2)) or "") ..
      (config.seed and (", seed %d"):format(config.seed) or ""),
    config.energy == "remote" and ", on another machine" or ", on this machine")
  return text
end

local function unmeasured(run)
  local ledger, out = run.summary.ledger or {}, {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    local row = ledger[domain]
    if row and not row.total_j then
      out[#out + 1] = domain_names[domain] .. (row.reason and row.reason ~= "no_sensor" and
        " (" .. row.reason:gsub("_", " ") .. ")" or "")
    end
  end
  return out
end
headline.unmeasured = unmeasured

--- The share of the joules that no counter told for one query alone.
function headline.shared(run)
  local shared, all = 0, 0
  for _, q in ipairs(run.queries) do
    if q.energy.joules then
      all = all + q.energy.joules
      if q.energy.provenance == "distributed" then shared = shared + q.energy.joules end
    end
  end
  return all > 0 and shared / all or 0
end

local function is_remote(run)
  for _, row in pairs(run.summary.ledger or {}) do
    if row.reason == "remote" then return true end
  end
  return false
end

headline.is_remote = is_remote

function headline.short_reason(run) return is_remote(run) and "the model ran elsewhere" or "no sensor was read" end

--- What a model says where no sensor does: a sentence; it is in no figure of the page.
local function estimated(run)
  local told = {}
  local sums = (run.summary.totals or {}).with_estimates or {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    if sums[domain] then
      told[#told + 1] = ("\u{2248} %s J (%s)"):format(numbers.plain(sums[domain], 2), domain_names[domain])
    end
  end
  if #told == 0 then return "" end
  return (" A power model estimates %s; no figure here includes it."):format(table.concat(told, ", "))
end

--- Why there are no joules, and what helps: a sentence. Only of a run without any.
function headline.no_joules(run)
  if not is_remote(run) then
    local note = (run.summary.energy_note or "no sensor was read"):gsub("^%(%s*%) ", "the processors are only ")
    return "No joules: " .. note .. "." .. estimated(run) ..
      " ipw-agent doctor says what each sensor needs; then run again."
  end
  local own = {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    local row = (run.summary.ledger or {})[domain]
    if row and row.total_j then own[#own + 1] = numbers.joules(row.total_j) .. " (" .. domain_names[domain] .. ")" end
  end
  return "No joules: the model ran on another machine, whose sensors were not read (run --telemetry stream=URL)." ..
    (#own > 0 and (" This machine drew %s meanwhile; no figure here includes it."):format(
      table.concat(own, ", ")) or "")
end

--- How the joules were obtained.
function headline.how(run)
  local basis = (run.manifest.hardware or {}).basis or {}
  local named = {}
  for _, domain in ipairs(run.domains) do named[#named + 1] = (basis[domain] or domain_names[domain]) end
  if #run.domains == 0 then return headline.no_joules(run) end
  local text = table.concat(named, "; ") .. ". The totals are counted."
  if headline.shared(run) > 0.005 then
    text = text .. " Where queries were in flight together, or a counter is slower than a window, a " ..
      "query\u{2019}s figure is " ..
      "its share of the counter (marked ~)."
  end
  local not_measured = unmeasured(run)
  if #not_measured > 0 then text = text .. " Not measured: " .. table.concat(not_measured, ", ") .. "." end
  return text
end

local lost = { gpu_lost = "the GPU was lost during the run", lost = "its sensor was lost during the run",
               stuck = "its counter stood still", contradicted = "another sensor contradicts it",
               counter_reset = "its counter was reset", suspended = "the machine slept",
               not_covered = "readings are missing" }

--- What a reader must know before the numbers: {text, id of the section that shows it}.
function headline.flags(run)
  local flags = {}
  local function flag(text, where) flags[#flags + 1] = { text, where or "books" } end
  local summary, manifest = run.summary, run.manifest
  if headline.model(run) == "demo" then
    flag("The model is the built-in demo, a script: its answers and times say nothing of a real model.")
  end
  if manifest.replay then flag("This is a replay: the model was not asked again.") end
  if summary.status and summary.status ~= "complete" then
    flag(("The run ended early (%s)%s."):format(summary.status, summary.note and ": " .. summary.note or ""), "queries")
  end
  for _, domain in ipairs(run.domains) do
    local row = (summary.ledger or {})[domain] or {}
    if row.balanced == false then
      flag(("The %s ledger does not balance: %s J are left over."):format(domain_names[domain],
        numbers.plain(row.difference_j or 0)))
    end
    local base = ((summary.baseline or {}).domains or {})[domain] or {}
    if base.net_withheld == "drift" then
      flag(("The %s drew %s W before the run and %s W after it: its idle power drifted."):format(domain_names[domain],
        numbers.plain(base.before_w), numbers.plain(base.after_w)), "power")
    end
  end
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    local reason = ((summary.ledger or {})[domain] or {}).reason
    if lost[reason] then flag(("%s: %s. Its joules are in no figure."):format(domain_names[domain], lost[reason])) end
  end
  if (summary.efficiency or {}).withheld == "too_coarse" then
    flag("The sensor is too coarse: the joules may be off by more than half, so there is no "
      .. "efficiency.", "energy")
  end
  if manifest.not_quiet then
    flag("The machine was not quiet before the start: " .. manifest.not_quiet
      .. ". The joules include other programs\u{2019} use.")
  end
  if (summary.run or {}).earlier_attempts and summary.run.earlier_attempts > 0 then
    flag(("The sum of the joules includes %s of queries that were run again."):format(
      numbers.count(summary.run.earlier_attempts, "earlier attempt")), "energy")
  end
  if manifest.redacted then flag("Texts were replaced before this run was shared.") end
  return flags
end

--- The top of the page.
function headline.html(run)
  local function mark(text, plain) return plain and html.name(text) or "<b>" .. html.name(text) .. "</b>" end
  local flags = {}
  for _, flag in ipairs(headline.flags(run)) do
    flags[#flags + 1] = ('<a class="flag" href="#%s%s">%s</a>'):format(html.prefix, flag[2], html.text(flag[1]))
  end
  local size = run.beside and "h2" or "h1"
  return ('<%s>%s</%s><div class="intro"><p><b>What was run.</b> %s</p><p><b>How the joules were obtained.</b> ' ..
    '%s</p></div>%s')
    :format(size, html.keep(html.name(headline.title(run))), size,
      headline.what(run, mark) .. html.text(machine_line(run)),
      html.text(headline.how(run)), #flags > 0 and '<div class="flags">' .. table.concat(flags) .. "</div>" or "")
end

return headline
