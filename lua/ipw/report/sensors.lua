--- ipw.report.sensors: the screen of `telemetry`: what is measured here, how far it is believed, what is missing.
--
-- `text` makes it from the table of `telemetry --json` (telemetry/telemetry_facts.c).
local quantity = require "ipw.quantity"
local screen = require "ipw.screen"
local values = require "ipw.summary.values"

local sensors = {}

local OTHER_COLUMNS, LEAST_NAME = 64, 16 -- of the table beside the channel's name
local UNITS = { pct = "%", celsius = "°C", clock_us = "µs" }
local REASONS = { unsupported = "not here: ", not_found = "not here: ", permission = "permission: " }
local HELPS = {
  "on bare metal: read access to /sys/class/powercap (RAPL), see below",
  "with an NVIDIA GPU: its driver, and libnvidia-ml.so.1 inside the container",
  "in a virtual machine, or when the model runs elsewhere: ipw-agent telemetry --listen on that machine, --telemetry "
    .. "stream=http://HOST:9440 here; or its exporter (DCGM, Scaphandre, Kepler), --telemetry "
    .. "prometheus=http://HOST:9400/metrics",
  "a power meter: --telemetry log=FILE.csv, or exec=COMMAND that prints watts",
}

--- Three digits, without an exponent: "0.52 W", "71.3 W", "5208 W".
local function watts(x)
  if not x then return quantity.unknown end
  return ("%." .. (math.abs(x) < 9.995 and 2 or math.abs(x) < 99.95 and 1 or 0) .. "f W"):format(x)
end

local function metric(channel)
  if channel.unit == "bytes" then return ("%.2f GiB"):format(channel.value / 1024.0 ^ 3) end
  return ("%.4g %s"):format(channel.value, UNITS[channel.unit] or channel.unit or "")
end

--- As long as the longest name, if the other columns leave so much room: one of them is the longest verdict.
local function name_columns(doc, width)
  local most, longest = math.max(LEAST_NAME, width - OTHER_COLUMNS), LEAST_NAME
  for _, channel in ipairs(doc.channels) do longest = math.max(longest, screen.columns(channel.name)) end
  return math.min(longest, most)
end

--- Names with a common beginning (a host's) differ at their end.
local function name_cell(name, columns)
  name = screen.cell(name)
  if screen.columns(name) > columns then
    repeat name = name:sub((utf8.offset(name, 2))) until screen.columns(name) < columns
    name = "…" .. name
  end
  return screen.left(name, columns)
end

local function put_channel(out, view, channel, names)
  local now = channel.value and metric(channel) or watts(channel.watts)
  out[#out + 1] = (" %s %s %s %s %s %s %s"):format(screen.left(screen.cell(channel.source, 11), 11),
    name_cell(channel.name, names), screen.left(channel.kind == "metric" and "metric" or channel.scope, 8),
    screen.right(screen.cell(now, 10), 10), screen.right(channel.period_s and quantity.seconds(channel.period_s)
      or quantity.unknown, 7), screen.left(channel.in_sum and channel.domain or "", 7),
    view.paint(channel.self_test, channel.self_test == "ok" and "green" or "yellow"))
end

--- The watts of a domain: of all channels that cover it, if all are known and believed.
local function domain_watts(doc, domain)
  local sum = 0
  for _, channel in ipairs(doc.channels) do
    if channel.in_sum and channel.domain == domain then
      if not channel.believed or not channel.watts then return nil end
      sum = sum + channel.watts
    end
  end
  return sum
end

local function put_sums(out, view, doc)
  for _, domain in ipairs(values.DOMAINS) do
    local basis = doc.hardware.basis[domain]
    local sum = basis and domain_watts(doc, domain)
    if basis then
      out[#out + 1] = " " .. view.paint(screen.left(domain, 8)
        .. screen.right(sum and watts(sum) or "unknown", 12), "bold") .. "  " .. basis
    end
  end
end

local function put_words(out, view, style, name, words)
  local first = view.paint(screen.left(name, 11), style)
  out[#out + 1] = " " .. first .. " " .. screen.wrap(screen.cell(words), 13, 13, view.width)
end

--- The sources that were looked for and are not there; first those that may not be read.
local function put_missing(out, view, doc)
  for _, denied in ipairs { true, false } do
    for _, sensor in ipairs(doc.hardware.sensors) do
      if not sensor.found and (sensor.reason == "permission") == denied then
        put_words(out, view, denied and "red" or nil, sensor.name, (REASONS[sensor.reason] or "") .. sensor.text)
      end
    end
  end
end

--- The channels of a run, a recording and a page are fixed at the start.
local function put_when(out, view, doc)
  if #doc.hardware.sensors == 0 then return end
  out[#out + 1] = "\n" .. screen.wrap("Sensors are detected at the start. To use a sensor that appeared later (a "
    .. "driver that was loaded, a GPU that woke up), start the command again.", 0, 0, view.width)
end

local function put_nothing(out, view, doc)
  if #doc.hardware.sensors == 0 then
    out[#out + 1] = "No sensor is selected."
    return
  end
  out[#out + 1] = "No energy sensor can be read on this machine.\n"
  for _, sensor in ipairs(doc.hardware.sensors) do
    if sensor.reason == "permission" then
      out[#out + 1] = "There is one, and it may not be read: see below for the remedy.\n"
      break
    end
  end
  out[#out + 1] = "What would help:"
  for _, help in ipairs(HELPS) do out[#out + 1] = screen.wrap("- " .. help, 0, 2, view.width) end
  out[#out + 1] = "\nWhat was looked for:"
end

--- The screen.
---@param doc table of telemetry --json
---@param how {width: integer, colour: boolean, brief: boolean} brief: without sensors that were not found
---@return string
function sensors.text(doc, how)
  local view = screen.view(how.width, how.colour)
  values.without_null(doc)
  local hardware = doc.hardware
  local out = { ("%s  (%s; label %s)\n"):format(view.paint(hardware.labels.hw, "bold"), hardware.cpu
    or "unknown processor", hardware.labels.upstream) }
  if #doc.channels > 0 then
    local names = name_columns(doc, view.width)
    out[#out + 1] = view.paint((" %s %s %s %s %s %s self-test"):format(screen.left("source", 11),
      screen.left("channel", names), screen.left("scope", 8), screen.right("now", 10), screen.right("period", 7),
      screen.left("counts", 7)), "dim")
    for _, channel in ipairs(doc.channels) do put_channel(out, view, channel, names) end
    out[#out + 1] = ""
    put_sums(out, view, doc)
    out[#out + 1] = ""
    for _, note in ipairs(doc.notes) do put_words(out, view, nil, note.source, note.text) end
  else
    put_nothing(out, view, doc)
  end
  if not how.brief or #doc.channels == 0 then
    put_missing(out, view, doc)
    put_when(out, view, doc)
  end
  return table.concat(out, "\n") .. "\n"
end

return sensors
