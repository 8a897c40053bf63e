--- ipw.cli.replay: `ipw-agent replay RUN`: prints a saved run query by query, or follows a run that goes on
--- (src/app/cmd_replay.c starts it).
local core = require "ipw.core.export"
local screen = require "ipw.screen"
local timeline = require "ipw.report.timeline"
local whole_line = require "ipw.whole_line"

local printable = require("ipw.core.text").printable

local PAUSE_S = 0.2
local keys = { energy = true, time = true, tokens = true }

--- Calls each(query, place) for the queries of the run; `each` returns true to end.
local function each_query(each)
  local reader, place = core.open(1), 0
  for query in function() return (core.query(reader)) end do
    place = place + 1
    if each(whole_line(query), place, reader) then break end
  end
  core.close(reader)
  return place
end

local function told(view, query, reader)
  local ok, events = pcall(core.events, reader, query.query_index or -1)
  local note = not ok and "texts may be missing: " .. tostring(events) or nil
  return timeline.query(view, query, ok and events or {}, note)
end

--- The texts of the queries with the largest costs, in their order.
local function dearest(view, by, limit)
  local machines, devices, any_machine = {}, {}, false
  each_query(function(query, place)
    local cost, of_devices = timeline.cost(query, by)
    machines[place], devices[place] = cost or false, of_devices or false
    any_machine = any_machine or cost ~= nil
  end)
  local order = timeline.ranked(by == "energy" and not any_machine and devices or machines)
  local texts, wanted = {}, {}
  for rank = 1, math.min(limit or #order, #order) do wanted[order[rank]] = rank end
  each_query(function(query, place, reader)
    if wanted[place] then texts[wanted[place]] = told(view, query, reader) end
  end)
  return texts
end

local function show(io, o, run)
  local view, shown = screen.view(io.width, io.colour), 0
  if o.sort and not keys[o.sort] then
    local near = require("ipw.core.script").nearest(o.sort, { "energy", "time", "tokens" })
    io.usage("--sort: energy, time or tokens, not '%s'%s", o.sort:sub(1, 40),
      near and (" (did you mean '%s'?)"):format(near) or "")
  end
  if o.sort then
    for _, text in ipairs(dearest(view, o.sort, o.limit)) do
      io.say(text)
      shown = shown + 1
    end
  else
    local id, index
    if o.query then
      local ok
      ok, id, index = pcall(core.find, 1, o.query)
      if not ok then io.fail(("%s: %s"):format(run, tostring(id)), 3) end
    end
    each_query(function(query, place, reader)
      if id and (query.query_id ~= id or index and query.query_index ~= index) then return false end
      io.say(told(view, query, reader))
      shown = shown + 1
      return o.limit and place >= o.limit
    end)
    if id and shown == 0 then
      io.fail(("%s: query \"%s\" is not finished"):format(run, printable(id, 80)), 3)
    end
  end
  if shown == 0 and not o.quiet then
    io.warn(("ipw-agent: %s: no query is finished (use --follow to see the events)"):format(run))
  end
end

local function follow(io, o, run)
  local reader = core.open(1)
  local follower = require "ipw.report.follow" (screen.view(io.width, io.colour), o.query)
  local alive, over, any = true, false, false
  while true do
    local ok, event = pcall(core.each_event, reader)
    if not ok then
      io.warn("ipw-agent: " .. tostring(event)) -- a damaged line: what follows is shown
    elseif event then
      local text
      any, text, over = true, follower:event(event)
      if text then io.say(text) end
    elseif over or not alive then
      break
    else
      -- Reads once more after the process has ended, because it may have written before its end.
      alive = core.goes_on(reader)
      if alive then require("ipw.core.run").sleep(PAUSE_S) end
    end
  end
  if not any then io.fail(run .. "/events.jsonl: has no events", 3) end
end

return {
  usage = "replay RUN",
  about = "Print a saved run.",
  options = {
    { "follow", "flag", "print its events as they come" },
    { "query", "string", "ID", "only this query" },
    { "sort", "string", "KEY", "the dearest first: energy, time or tokens" },
    { "limit", "integer", "N", "at most so many queries", min = 0 },
    { "quiet", "flag", "no remarks" },
    "verbose",
  },
  args   = { 1, 1 },
  cpu_s  = 60,
  memory = "4G", -- a query's line may have 512 MiB
  failed = 3,
  run    = function(io, o, args)
    io.saved(args)
    return (o.follow and follow or show)(io, o, args[1])
  end,
}
