--- ipw.report.short: the end of a run on one screen: the report in the terminal in its short form.
--
-- It is made of summary.json and of a few facts of each query, in the words and the rounding of the report. Columns
-- fit the terminal. What it leaves out (efficiency, provenance, the books to the microjoule) stands in
-- `ipw-agent report` and `ipw-agent show --books`. Reads nothing.
local booking = require "ipw.report.booking"
local energy = require "ipw.report.energy"
local headline = require "ipw.report.headline"
local costs = require "ipw.costs"
local key_numbers = require "ipw.report.key_numbers"
local numbers = require "ipw.report.numbers"
local quantity = require "ipw.quantity"
local queries = require "ipw.report.queries"
local saved = require "ipw.report.saved"
local screen = require "ipw.screen"

local short = {}

local LABEL, NUMBERS, DEAREST, REASONS, IDS = 12, 42, 4, 3, 6
local SHOWN_TOOLS = 12
local LONGEST_NAME = 24 -- in columns
short.SHOWN_QUERIES = 60 -- rows

local colours = { prefill = "34", decode = "94", lm = "36", tool1 = "33", tool2 = "33", tool3 = "33", tool4 = "33",
                  agent = "35", wait = "32", idle = "90", other = "90" }

--- A view of ipw.screen that also paints the bars of parts: bar(text, class).
function short.view(width, colour)
  local view = screen.view(width, colour)
  view.bar = function(text, class)
    return colour and text ~= "" and "\27[" .. colours[class] .. "m" .. text .. "\27[0m" or text
  end
  return view
end

short.eighths = { "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" }

--- A bar of so many columns (a fraction), the last `wasted` of them hatched; and its columns.
local function blocks(columns, wasted, paint, class)
  local hatched = wasted > 0 and math.max(1, math.floor(wasted + 0.5)) or 0
  local solid = math.max(0, columns - hatched)
  local whole = math.floor(solid)
  local text = ("█"):rep(whole) .. (short.eighths[math.floor((solid - whole) * 8 + 0.5)] or "")
  if text == "" and hatched == 0 then text = "·" end
  return paint(text, class) .. ("▒"):rep(hatched), utf8.len(text) + hatched
end

--- A query as this screen has it, from a line of traces.jsonl.
function short.query(run, query)
  local joules = #run.domains > 0 and 0 or nil
  for _, domain in ipairs(run.domains) do
    local j = ((query.energy or {})[domain] or {}).joules
    joules = joules and j and joules + j
  end
  return { id = query.query_id or "?", index = query.query_index or 0, mark = saved.mark(query), joules = joules,
    seconds = query.total_wall_clock_s, outcome = query.outcome or "answered", error = query.error,
    epoch = query.epoch or 0, level = (query.metadata or {}).level, turns = query.num_turns,
    tools = query.total_tool_calls, input = query.total_input_tokens, output = query.total_output_tokens,
    answer = query.completed and query.answer or nil }
end

--- The seconds of all sessions, also of those that were killed; nil: not known.
local function on_the_clock(manifest)
  local sum
  for _, session in ipairs((manifest or {}).segments or {}) do
    if not session.start_ns or not session.end_ns then return nil end
    sum = (sum or 0) + (session.end_ns - session.start_ns) / 1e9
  end
  return sum
end

--- The run of a summary. `queries` is filled by the caller with short.query; it stays empty for a long run.
function short.run(path, manifest, summary)
  local totals, own = summary.totals or {}, summary.own_overhead or {}
  local run = { path = path, manifest = manifest or {}, summary = summary, queries = {},
    n_queries = totals.queries or 0, domains = saved.domains_of(summary),
    seconds = on_the_clock(manifest) or own.wall_s or 0 }
  booking.of_summary(run)
  return run
end

--- What ids have in common is left out: "frames-001" and "frames-027" are 001 and 027. Only whole words are left out.
---@return fun(id: string): string
local function shortener(list)
  local common
  for _, q in ipairs(list) do
    if not common then
      common = q.id
    else
      local n = 0
      while n < #common and common:byte(n + 1) == q.id:byte(n + 1) do n = n + 1 end
      common = common:sub(1, n)
    end
  end
  common = #list > 1 and common:match "^.*[%p%s_]" or ""
  return function(id)
    local rest = screen.cell(id:sub(#common + 1), 200)
    if screen.columns(rest) <= 12 then return rest end
    return screen.cut(rest, 8) .. (rest:match "[\32-\126]*$"):sub(-4)
  end
end

local function put(out, view, label, text)
  if text == "" then return end
  out[#out + 1] = " " .. view.paint(screen.left(label, LABEL - 1), "cyan") .. " "
    .. screen.wrap(text, LABEL + 1, LABEL + 1, view.width)
end

local function seconds(s) return (quantity.seconds(s):gsub(" ", "\u{A0}")) end

--- "joules: GPU 81 %, CPU 17 %, DRAM 2 %"
local function devices(run)
  local out = {}
  if run.no_parts or run.sum_uj == 0 or #run.domains < 2 then
    return #run.domains > 0 and "joules: " .. headline.devices(run.domains, "+") or ""
  end
  for _, domain in ipairs(run.domains) do
    local uj = 0
    for _, part in ipairs(run.parts) do uj = uj + (part.by_domain[domain] or 0) end
    out[#out + 1] = headline.devices { domain } .. " " .. numbers.share(uj, run.sum_uj, true)
  end
  return "joules: " .. table.concat(out, ", ")
end

--- The title, what was run, and what spoils it.
function short.head(out, view, run)
  local summary = run.summary
  local accuracy = key_numbers.accuracy(run)
  local interval = accuracy.text and (" (%s %%%s)"):format(accuracy.text,
    accuracy.range and "; 95 % interval: " .. accuracy.range or "") or ""
  local title = screen.cell(headline.title(run)) .. interval:gsub("(.) ", "%1\u{A0}")
  out[#out + 1] = ""
  out[#out + 1] = " " .. view.paint(screen.wrap(title, 1, 1, view.width), "bold")
  local facts = { "agent " .. screen.cell((summary.run or {}).agent or "?"),
    headline.at_a_time(run.manifest.config or {}), seconds(run.seconds) }
  facts[#facts + 1] = devices(run) ~= "" and devices(run) or nil
  out[#out + 1] = " " .. screen.wrap(table.concat(facts, " · "), 1, 1, view.width)
  if summary.status and summary.status ~= "complete" then
    local planned = (summary.run or {}).planned
    out[#out + 1] = " " .. view.paint(summary.status .. (planned and (": %d of %d queries done"):format(
      run.n_queries - ((summary.totals or {}).interrupted or 0), planned) or ""), "yellow")
  end
  if run.n_queries > 0 and ((summary.totals or {}).completed or 0) == 0 then
    out[#out + 1] = " " .. view.paint("no query was answered", "yellow")
  end
  if summary.judge and not accuracy.text then
    out[#out + 1] = " " .. view.paint("nothing was scored: no answer has a verdict", "yellow")
  end
  for _, flag in ipairs(headline.flags(run)) do
    if not flag[1]:find "^The run ended early" then
      out[#out + 1] = " " .. view.paint(screen.wrap("! " .. screen.cell(flag[1]), 1, 3, view.width), "yellow")
    end
  end
end

local words = { ["waiting to retry"] = "retry wait", ["other model time"] = "model call, other",
  ["idle, no query in flight"] = "idle (no query)", prefill = "prefill (prompt)",
  decode = "decode (reply)" }

--- The parts with their joules, seconds and calls: a row each, one unit a column.
local function put_parts(out, view, run)
  local known, rows, tools, largest = not run.no_parts and run.sum_uj > 0, {}, 0, 1
  local name = LABEL + 2 -- as wide as the longest name, to a limit
  for _, part in ipairs(run.parts or {}) do
    tools = tools + (part.tool and 1 or 0)
    if not part.tool or tools <= SHOWN_TOOLS then
      rows[#rows + 1] = part
      name = math.min(math.max(name, screen.columns(screen.cell(words[part.name] or part.name)) + 1), LONGEST_NAME)
    end
    largest = math.max(largest, part.uj)
  end
  if not known and #rows == 0 then return end
  local bar = known and math.max(0, math.min(view.width - name - NUMBERS, 40)) or 0
  local function row(what, part_columns, s, calls, failed)
    return (" %s%s%s%s%s"):format(what, part_columns, screen.right(s, 9), screen.right(calls, 7),
      screen.right(failed, 9)):gsub(" +$", "")
  end
  local head = known and screen.right("J", 9) .. screen.right("%", 6) .. " "
    .. screen.left(run.wasted_uj > 0 and "▒ wasted" or "", bar) or ""
  out[#out + 1] = ""
  out[#out + 1] = view.paint(row(screen.left("where", name), head, "s", tools > 0 and "calls" or "",
    tools > 0 and "failed" or ""), "bold")
  for _, part in ipairs(rows) do
    local label = screen.cell(words[part.name] or part.name)
    local columns = ""
    if known then
      local drawn, long = blocks(part.uj / largest * bar, part.wasted_uj / largest * bar,
        view.bar, part.class)
      columns = screen.right(numbers.cell(part.uj / 1e6), 9)
        .. screen.right((numbers.share(part.uj, run.sum_uj):gsub(" %%$", "")), 6)
        .. " " .. drawn .. (" "):rep(bar - long)
    end
    out[#out + 1] = row(screen.left(screen.cut(label, name - 1), name), columns,
      part.seconds and numbers.cell(part.seconds) or "", part.calls and numbers.at(part.calls, 0) or "",
      (part.tool or (part.failed or 0) > 0) and numbers.at(part.failed or 0, 0) or "")
  end
  if known then
    out[#out + 1] = (" %s%s%s (the sensors’ total)"):format(screen.left("sum", name),
      screen.right(numbers.cell(run.sum_uj / 1e6), 9), screen.right("100", 6))
  end
  if tools > SHOWN_TOOLS then
    out[#out + 1] = (" %s: see `tools` in summary.json"):format(
      numbers.count(tools - SHOWN_TOOLS, "more tool"))
  end
end

--- Of domains that some queries lack: "GPU 300 J (2 of 4 queries without: gpu lost)".
local function known_joules(run)
  local out, totals, statistics = {}, run.summary.totals or {}, run.summary.statistics or {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    local key = domain .. "_energy_joules"
    local known, with = (totals.known or {})[key], (statistics[key] or {}).n or 0
    local reason = ((run.summary.ledger or {})[domain] or {}).reason
    if known and with > 0 then
      out[#out + 1] = headline.devices { domain } .. " " .. numbers.joules(known) .. (with < run.n_queries and
        (" (%d of %d queries without%s)"):format(run.n_queries - with, run.n_queries,
          reason and ": " .. reason:gsub("_", " ") or "") or "")
    end
  end
  return #out > 0 and table.concat(out, " · ") or nil
end

-- Reasons that the sentence for a run without joules tells.
local said = { no_sensor = true, switched_off = true, permission = true, remote = true }

--- Why joules are not known, if a sensor could have been there.
local function put_not_measured(out, view, run)
  if #run.domains == 0 then
    out[#out + 1] = ""
    put(out, view, "energy", screen.cell(headline.no_joules(run)):gsub("^No joules: ", "not measured: "))
  elseif run.no_parts then
    put(out, view, "energy", known_joules(run) or "the parts are not known: " .. run.no_parts)
  end
  local missing, ledger = {}, run.summary.ledger or {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    local row = ledger[domain] or {}
    if not row.total_j and row.reason and not (#run.domains == 0 and said or { no_sensor = true })[row.reason] then
      missing[#missing + 1] = ("%s (%s)"):format(headline.devices { domain }, row.reason:gsub("_", " "))
    end
  end
  if #missing > 0 then put(out, view, "", "not measured: " .. table.concat(missing, ", ")) end
  if run.no_parts then return end
  for _, text in ipairs(energy.disagreements(run)) do put(out, view, "", text) end
end

--- Where the energy went, a row each part, and what was not measured.
function short.parts(out, view, run)
  put_parts(out, view, run)
  put_not_measured(out, view, run)
end

local function put_per_query(out, view, run)
  local metrics, parts = (run.summary.repeats or {}).metrics or {}, {}
  local totals, n = run.summary.totals or {}, run.n_queries
  local joules = (run.summary.efficiency or {}).mean_joules_per_query
  if n == 0 then return end
  if joules then
    local m = metrics.joules or {}
    local text, range = numbers.interval(joules, m.lo and math.max(0, m.lo), m.hi)
    local open, known = headline.open_by_sensor(run, "mean_joules_per_query"), {}
    if range and n > 1 then known[1] = "95 %: " .. range end
    if open then known[#known + 1] = "sensor " .. open end
    parts[1] = text .. " J" .. (#known > 0 and " (" .. table.concat(known, ", ") .. ")" or "")
  end
  local each = (run.summary.averages or {}).wall_clock_per_query_s
  if each then parts[#parts + 1] = seconds(each) end
  if totals.input_tokens and totals.output_tokens then
    parts[#parts + 1] = numbers.plain((totals.input_tokens + totals.output_tokens) / n) .. " tokens"
  end
  local ttft = (run.summary.latency or {}).ttft_s or {}
  if ttft.p50 and ttft.n > 0 then
    parts[#parts + 1] = ("first\u{A0}token\u{A0}%s (p95 %s)"):format(seconds(ttft.p50),
      seconds(ttft.p95))
  end
  put(out, view, n == 1 and "the query" or "per query", table.concat(parts, " · "))
end

--- What all queries did together: turns, calls, retries, money.
local function put_work(out, view, run)
  local totals, parts = run.summary.totals or {}, {}
  local function count(key, one, many)
    local n = totals[key]
    if n and n > 0 then parts[#parts + 1] = numbers.count(n, one, many) end
  end
  count("turns", "turn")
  count("tool_calls", "tool call")
  count("retries", "retry", "retries")
  count("malformed_replies", "reply did not follow the agent's format", "replies did not follow the agent's format")
  count("context_trimmed_turns", "shortened context")
  local own = run.summary.own_overhead or {}
  if own.share then
    parts[#parts + 1] = ("ipw-agent itself %s of one core"):format(
      numbers.share(own.share, 1):gsub(" ", "\u{A0}"))
  end
  put(out, view, "in all", table.concat(parts, " · "))
  local config = (run.manifest or {}).config or {}
  for _, line in ipairs(costs.lines(costs.of(run.summary, config))) do put(out, view, line[1], line[2]) end
  local models = {}
  for name, model in pairs(run.summary.models or {}) do
    models[#models + 1] = ("%s %s"):format(screen.cell(name), numbers.count(model.turns or 0, "turn"))
  end
  table.sort(models)
  if #models > 1 then put(out, view, "models", table.concat(models, " · ")) end
end

local function put_judge(out, view, run)
  local judge, parts = run.summary.judge, {}
  if not judge then return end
  local counted = { { "correct", "correct" }, { "incorrect", "incorrect" }, { "not_attempted", "not attempted" },
    { "no_verdict", "without a verdict" } }
  for _, count in ipairs(counted) do
    local n = judge[count[1]] or 0
    if n > 0 then parts[#parts + 1] = numbers.at(n, 0) .. " " .. count[2] end
  end
  local text = screen.cell(judge.model or "several models") .. ": " .. table.concat(parts, ", ")
  if judge.input_tokens and judge.output_tokens then
    text = ("%s; %s tokens in, %s out"):format(text, numbers.at(judge.input_tokens, 0),
      numbers.at(judge.output_tokens, 0))
  end
  if judge.cost_usd then text = text .. ", " .. numbers.plain(judge.cost_usd) .. " USD" end
  for _, domain in ipairs { "gpu", "cpu" } do
    local joules = judge[domain .. "_energy_joules"]
    if joules then text = ("%s, %s %s"):format(text, headline.devices { domain }, numbers.joules(joules)) end
  end
  put(out, view, "judge", text)
end

local function put_repeats(out, view, run)
  local pass, parts = (run.summary.repeats or {}).pass_at or {}, {}
  for _, row in ipairs(pass) do
    if row.k and row.share then parts[#parts + 1] = ("k=%d %s"):format(row.k, numbers.share(row.share, 1)) end
  end
  put(out, view, "pass@k", table.concat(parts, ", "))
end

--- The sign of how a query ended, in its colour.
function short.sign(view, mark)
  return view.paint(queries.marks[mark], ({ right = "green", wrong = "red", failed = "yellow" })[mark] or "dim")
end

local function put_dearest(out, view, run, id_of)
  local list, parts = run.summary.dearest or {}, {}
  local value = list[1] and list[1].joules and "joules" or "seconds"
  if list[1] then run.dearest = { id = list[1].query_id } end
  for i = 1, math.min(DEAREST, #list) do
    local one = list[i]
    local q = { id = one.query_id, mark = saved.mark { is_resolved = one.resolved, completed = one.completed,
      outcome = one.stopped and "run_stopped" or nil }, joules = one.joules, seconds = one.seconds }
    parts[i] = ("%s %s %s"):format(short.sign(view, q.mark), id_of(q.id),
      value == "joules" and numbers.joules(q.joules) or seconds(q.seconds)):gsub(" ", "\u{A0}")
  end
  put(out, view, value == "joules" and "dearest" or "longest", table.concat(parts, "  "))
end

--- How a query failed, for a narrow column: its outcome comes first.
local function why_failed(q)
  local why = queries.outcome(q)
  if not q.error or q.error == q.outcome then return why end
  return (why == "error" or why == "") and q.error or why .. ": " .. q.error
end

--- Failed queries by their reasons, the most frequent first.
local function put_failed(out, view, run, id_of)
  local reasons, order = {}, {}
  for _, q in ipairs(run.queries) do
    if q.mark == "failed" then
      local why = why_failed(q)
      if not reasons[why] then
        reasons[why] = {}
        order[#order + 1] = why
      end
      table.insert(reasons[why], id_of(q.id))
    end
  end
  table.sort(order, function(a, b)
    if #reasons[a] ~= #reasons[b] then return #reasons[a] > #reasons[b] end
    return a < b
  end)
  for i = 1, math.min(REASONS, #order) do
    local ids = reasons[order[i]]
    local more = #ids > IDS and (" and %d more"):format(#ids - IDS) or ""
    put(out, view, i == 1 and "failed" or "", view.paint("!", "yellow") .. " " .. table.concat(ids, ", ", 1,
      math.min(IDS, #ids)) .. more .. "  " .. screen.fit(order[i], 2 * view.width))
  end
  if #order > REASONS then
    put(out, view, "", ("%s: see `failed` in summary.json"):format(
      numbers.count(#order - REASONS, "more reason")))
  end
  local failed = (run.summary.totals or {}).failed or 0
  if #run.queries == 0 and failed > 0 then
    put(out, view, "failed", numbers.count(failed, "query", "queries")
      .. ": see `failed` in summary.json for the reasons")
  end
end

-- The columns of a query's row between its id and its answer: heading, text (nil: unknown), and whether it is left out
-- where no query has it.
local row_columns = {
  { "epoch", function(q) return q.epoch > 0 and numbers.at(q.epoch, 0) end, true },
  { "level", function(q) return q.level and screen.cell(tostring(q.level), 5) end, true },
  { "turns", function(q) return q.turns and numbers.at(q.turns, 0) end },
  { "tools", function(q) return q.tools and numbers.at(q.tools, 0) end },
  { "in", function(q) return q.input and numbers.at(q.input, 0) end },
  { "out", function(q) return q.output and numbers.at(q.output, 0) end },
  { "s", function(q) return q.seconds and numbers.plain(q.seconds) end },
  { "J", function(q) return q.joules and numbers.plain(q.joules) end, true },
}

--- The queries by their numbers, a row each: what each did, and its answer or why it failed. "" without queries.
---@param view table of ipw.screen
---@param run table of short.run
---@return string
function short.rows(view, run)
  local list, id_of = table.move(run.queries, 1, #run.queries, 1, {}), shortener(run.queries)
  if #list == 0 then return "" end
  table.sort(list, function(a, b)
    if a.index ~= b.index then return a.index < b.index end
    return a.epoch < b.epoch
  end)
  local shown, id_width, columns = math.min(#list, short.SHOWN_QUERIES), 5, {}
  for i = 1, shown do id_width = math.max(id_width, screen.columns(id_of(list[i].id))) end
  local head = "   " .. screen.left("query", id_width)
  for _, column in ipairs(row_columns) do
    local width, any = screen.columns(column[1]), not column[3]
    for i = 1, shown do
      local text = column[2](list[i])
      any, width = any or text, math.max(width, screen.columns(text or numbers.dash))
    end
    if any then
      columns[#columns + 1] = { column[2], width }
      head = head .. "  " .. screen.right(column[1], width)
    end
  end
  local out = { "", view.paint(head .. "  answer", "bold") }
  for i = 1, shown do
    local q = list[i]
    local line = (" %s %s"):format(short.sign(view, q.mark),
      screen.left(id_of(q.id), id_width))
    for _, column in ipairs(columns) do
      line = line .. "  " .. screen.right(column[1](q) or numbers.dash, column[2])
    end
    local text = q.answer or q.mark ~= "right" and why_failed(q) or ""
    local room = view.width - screen.columns(line) - 2
    out[#out + 1] = room > 0 and text ~= "" and line .. "  " .. screen.fit(text, room) or line
  end
  if shown < run.n_queries then
    out[#out + 1] = view.paint(("   … and %d more in traces.jsonl"):format(run.n_queries - shown), "dim")
  end
  return table.concat(out, "\n")
end

--- The share of the joules that no counter told for one query alone.
local function put_shared(out, view, run)
  local shared, known = 0, 0
  for _, domain in ipairs(run.domains) do
    local joules = ((run.summary.totals or {}).known or {})[domain .. "_energy_joules"]
    local by = (run.summary.provenance or {})[domain] or {}
    if joules then shared, known = shared + joules * (by.distributed or 0), known + joules end
  end
  if known == 0 or shared < 0.005 * known then return end
  put(out, view, "shared", numbers.share(shared, known, true)
    .. " of the queries’ joules: the sensors cannot tell the queries apart, so --share "
    .. screen.cell((run.manifest.config or {}).share or "phase")
    .. " divides them (ipw-agent ledger --share all compares the rules)")
end

--- What names a query: its id, or of a long id a beginning that no other query has. If not all
--- queries are known: the beginning and the end.
local function name_of(run, one)
  if #run.queries < run.n_queries then
    if #one.id <= 16 or one.id:find "[\128-\255]" then return one.id end
    return one.id:sub(1, 7) .. "…" .. one.id:sub(-4)
  end
  local n = 8
  for _, q in ipairs(run.queries) do
    while q.id ~= one.id and n < #one.id and q.id:sub(1, n) == one.id:sub(1, n) do n = n + 1 end
  end
  return #one.id > n + 4 and not one.id:find "[\128-\255]" and one.id:sub(1, n) or one.id
end

local function word(path)
  if path ~= "" and not path:find "[^%w_./:@%%+=,-]" then return path end
  return "'" .. path:gsub("'", "'\\''") .. "'"
end

--- The lines.
---@param view table of ipw.screen
---@param run table of short.run
---@param note? string what was not said at the start
---@param reported? boolean its head and its parts stand above, in the report
---@return string
function short.text(view, run, note, reported)
  local out, dearest = {}, {}
  for i, one in ipairs(run.summary.dearest or {}) do dearest[i] = { id = one.query_id } end
  local known = table.move(run.queries, 1, #run.queries, 1, {}) -- not all of them were read
  local id_of = shortener(table.move(dearest, 1, #dearest, #known + 1, known))
  if not reported then
    short.head(out, view, run)
    short.parts(out, view, run)
  end
  out[#out + 1] = ""
  put_per_query(out, view, run)
  put_work(out, view, run)
  put_judge(out, view, run)
  put_repeats(out, view, run)
  put_dearest(out, view, run, id_of)
  put_failed(out, view, run, id_of)
  put_shared(out, view, run)
  put(out, view, "note", screen.cell(note or ""))
  put(out, view, "saved in", screen.cell(run.path))
  local path = screen.cell(word(run.path))
  out[#out + 1] = ""
  local page, one = (" ipw-agent show %s -o page.html"):format(path), run.dearest or run.queries[1]
  local query = one and ("     ipw-agent show %s %s"):format(path,
    screen.cell(word(name_of(run, one)))) or ""
  local beside = screen.columns(page .. query) <= view.width
  out[#out + 1] = page .. (beside and query or "")
  if not beside then out[#out + 1] = query:gsub("^ +", " ") end
  return table.concat(out, "\n")
end

return short
