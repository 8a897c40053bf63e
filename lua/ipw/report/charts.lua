--- ipw.report.charts: axes of the charts that the program draws itself, as SVG.
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"

local charts = {}

--- A frame with two linear axes from 0: returns x(v), y(v) and the markup of grid and labels.
--- spec: width, height, left, right, top, bottom; x_top, y_top (data); x_unit, y_unit; x_title; x_steps, y_steps;
--- percent: the y axis is 0 to 100 %.
---@param spec table
function charts.frame(spec)
  local w, h = spec.width, spec.height
  local x0, x1, y0, y1 = spec.left, w - spec.right, h - spec.bottom, spec.top
  local x_step, x_end = numbers.axis(spec.x_top, spec.x_steps or 4)
  local y_step, y_end = numbers.axis(spec.y_top, spec.y_steps or 4)
  if spec.percent then y_step, y_end = 0.5, 1 end
  if not spec.x_whole then x_end = spec.x_top end
  if not spec.percent then y_end = math.max(spec.y_top, 1e-12) end
  local function x(v) return x0 + v / x_end * (x1 - x0) end
  local function y(v) return y0 - v / y_end * (y0 - y1) end
  local out = {}
  for i = 0, 40 do
    local v = i * y_step
    if v > y_end * 1.0001 then break end
    local text = spec.percent and ("%d%s"):format(v * 100, v == 1 and " %" or "") or numbers.tick(v, y_step)
    local last = (i + 1) * y_step > y_end * 1.0001
    out[#out + 1] = html.fill('<line class="grid" x1="%a%" x2="%b%" y1="%y%" y2="%y%"/><text class="muted" ' ..
      'x="%t%" y="%u%" text-anchor="end">%text%</text>',
      { a = x0, b = x1, y = y(v), t = x0 - 7, u = y(v) + 4, text = text .. (last and spec.y_unit or "") })
  end
  for i = 0, 40 do
    local v = i * x_step
    if v > x_end * 1.0001 then break end
    local last = (i + 1) * x_step > x_end * 1.0001
    out[#out + 1] = html.fill('<text class="muted" x="%x%" y="%y%" text-anchor="middle">%text%</text>',
      { x = x(v), y = y0 + (spec.ticks or 18), text = numbers.tick(v, x_step) .. (last and spec.x_unit or "") })
  end
  if spec.x_title then
    out[#out + 1] = html.fill('<text class="muted" x="%x%" y="%y%" text-anchor="end">%t%</text>', { x = x1,
      y = h - 3, t = spec.x_title })
  end
  return x, y, table.concat(out)
end

--- The chart around what was drawn. `told` says its numbers to who cannot see it.
function charts.svg(spec, class, told, body)
  return ('<svg class="chart %s" viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>'):format(class, spec.width,
    spec.height,
    html.text(told), body)
end

return charts
