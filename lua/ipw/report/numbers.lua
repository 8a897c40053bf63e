--- ipw.report.numbers: numbers as a reader of a report sees them. One function rounds each figure, so that
--- title, table and terminal say the same. page.js has the same rule for what it draws itself.
local numbers = {}

numbers.space = "\u{202F}" -- narrow, does not break
numbers.minus = "\u{2212}"
numbers.dash = "\u{2014}"

--- The decimal place (a power of ten) at which a value of half-width e is rounded: two digits of e up to
--- 354, one up to 949, else 1000.
---@param e number above 0
---@return integer
function numbers.place(e)
  local power = math.floor(math.log(e, 10))
  local first = math.floor(e / 10.0 ^ power * 100 + 0.5)
  if first >= 1000 then first, power = first // 10, power + 1 end
  if first <= 354 then return power - 1 end
  return power
end

local function group(digits)
  local head = #digits % 3
  local out = digits:sub(1, head)
  for i = head + 1, #digits, 3 do out = out .. (out ~= "" and numbers.space or "") .. digits:sub(i, i + 2) end
  return out
end

--- A value at a decimal place, thousands apart.
---@param value number
---@param place integer
---@return string
function numbers.at(value, place)
  local step = 10.0 ^ place
  local rounded = place >= 0 and math.floor(value / step + 0.5) * step or value
  local text = ("%." .. math.max(0, -place) .. "f"):format(math.abs(rounded))
  local whole, rest = text:match "^(%d+)(.*)$"
  local sign = value < 0 and text:find "[1-9]" and numbers.minus or ""
  return sign .. group(whole) .. rest
end

local function place_of(value, digits)
  if value == 0 then return 0 end
  local place = math.floor(math.log(math.abs(value), 10)) - digits + 1
  -- 9.996 has one digit more when it is rounded to three
  if math.abs(value) / 10.0 ^ place + 0.5 >= 10.0 ^ digits then place = place + 1 end
  return place
end

--- A value without bounds: three digits, or as many as asked for; all digits before the point.
---@param value number
---@param digits? integer
---@return string
function numbers.plain(value, digits)
  return numbers.at(value, math.min(0, place_of(value, digits or 3)))
end

--- A number of a table's column: whole from 10 on, two digits below.
---@param value number
---@return string
function numbers.cell(value)
  if value == 0 then return "0" end
  return numbers.at(value, math.abs(value) >= 9.95 and 0 or place_of(value, 2))
end

--- Numbers of one column, all with the decimals that give `most` four digits; what would be 0 is "<" the last place.
---@param most number
---@return fun(value: number): string
function numbers.column(most)
  local place = most > 0 and math.min(0, math.floor(math.log(most, 10)) - 3) or 0
  return function(value)
    if value > 0 and value < 0.5 * 10.0 ^ place then return "<" .. numbers.at(10.0 ^ place, place) end
    return numbers.at(value, place)
  end
end

--- Where a value with an interval is rounded.
---@return integer
function numbers.place_between(value, lo, hi)
  local e = math.max(value - lo, hi - value)
  if e <= 0 then return math.min(0, place_of(value, 3)) end
  return numbers.place(e)
end

--- A value with its interval over queries: its text, which does not depend on the interval, and "lo–hi".
---@return string, string?
function numbers.interval(value, lo, hi)
  if not (lo and hi) then return numbers.plain(value) end
  local place = numbers.place_between(value, lo, hi)
  return numbers.plain(value), numbers.at(lo, place) .. "\u{2013}" .. numbers.at(hi, place)
end

--- What stands before a figure for the way it was obtained.
local signs = { distributed = "~", estimated = "\u{2248}" .. " " }

--- Whether an upper bound is all that is known of a metered figure.
---@param figure table
---@return boolean
function numbers.below_resolution(figure)
  local value, lo, hi = figure.joules, figure.lo, figure.hi
  if not (lo and hi) or hi <= 0 or hi - value < value then return false end
  return lo <= 0 or not numbers.at(value, numbers.place_between(value, lo, hi)):find "[1-9]"
end

--- Bounds: "13.1–13.4"; nil: not known, or not apart in their digits (three, or those of a column).
---@param cell? fun(value: number): string
---@return string?
function numbers.between(lo, hi, cell)
  if not (lo and hi) then return nil end
  local from, to = (cell or numbers.plain)(lo), (cell or numbers.plain)(hi)
  return from ~= to and from .. "–" .. to or nil
end

--- A metered figure, {joules, lo, hi, provenance}: its text, which does not depend on its bounds, and these:
--- "(300–700)" or nil. `cell`: it stands in a column of numbers.
---@param figure table
---@param cell? fun(value: number): string
---@return string, string?
function numbers.metered(figure, cell)
  local bounds = numbers.between(figure.lo, figure.hi, cell)
  return (signs[figure.provenance] or "") .. (cell and cell(figure.joules) or numbers.plain(figure.joules,
    figure.provenance == "estimated" and 2 or 3)), bounds and "(" .. bounds .. ")"
end

--- A share of a whole, in per cent: "15.7 %", "<0.1 %"; whole: without a decimal.
---@param part number
---@param whole number
---@param coarse? boolean
---@return string
function numbers.share(part, whole, coarse)
  if whole == 0 then return numbers.dash end
  local percent = part / whole * 100
  if coarse then
    if percent > 0 and percent < 0.5 then return "<1 %" end
    return ("%d %%"):format(math.floor(percent + 0.5))
  end
  if percent > 0 and percent < 0.05 then return "<0.1 %" end
  if percent > 99.95 then return "100 %" end
  return ("%.1f %%"):format(percent)
end

--- Joules of a sentence: J up to 99 999, then kJ.
---@param joules number
---@return string
function numbers.joules(joules)
  if joules >= 99999.5 then return numbers.plain(joules / 1000) .. " kJ" end
  return numbers.cell(joules) .. " J"
end

--- A small number as a word.
---@param n integer
---@return string
function numbers.word(n)
  local words = { "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve" }
  return words[n] or numbers.at(n, 0)
end

--- "1 query", "3 queries".
---@return string
function numbers.count(n, one, many) return numbers.at(n, 0) .. " " .. (n == 1 and one or many or one .. "s") end

--- Steps of an axis from 0 to at least `top`: 1, 2 or 5 times a power of ten.
---@param top number
---@param wanted? integer how many steps at most
---@return number step, number top
function numbers.axis(top, wanted)
  wanted = wanted or 4
  if top <= 0 then return 1, 1 end
  local power = 10.0 ^ math.floor(math.log(top / wanted, 10))
  for _, factor in ipairs { 1, 2, 5, 10, 20 } do
    local step = power * factor
    if top / step <= wanted then return step, math.ceil(top / step - 1e-9) * step end
  end
  return power * 50, power * 50
end

--- A number of an axis whose steps are `step` apart.
---@return string
function numbers.tick(value, step)
  return numbers.at(value, value == 0 and 0 or math.min(0, math.floor(math.log(step, 10) + 1e-9)))
end

return numbers
