--- ipw.gaia_rule: GAIA's official scorer, and where a model's text has its final answer.
---
--- Exact, not approximate: Python's float() grammar, its lower() and its white space, so that the same answers are
--- right as by the benchmark's own program. ipw.core.text has the two tables of Unicode that this needs.
local core = require "ipw.core.text"

local rule = {}

-- Python's white space (str.isspace), by the bytes of its characters; the text is UTF-8.
local WIDE = { ["\u{1680}"] = true, ["\u{2028}"] = true, ["\u{2029}"] = true, ["\u{202f}"] = true, ["\u{205f}"] = true,
               ["\u{3000}"] = true }
for code = 0x2000, 0x200a do WIDE[utf8.char(code)] = true end
local TWO = { ["\u{85}"] = true, ["\u{a0}"] = true }

local function without_spaces(s)
  s = s:gsub("[\t-\r\x1c- ]+", ""):gsub("\xc2[\x85\xa0]", "")
  return (s:gsub("[\xe1-\xe3][\x80-\x9a][\x80-\xaf]", function(c) return WIDE[c] and "" or nil end))
end

--- Without white space around it; the text may be any bytes.
local function strip(s)
  local first, last = s:byte(1), s:byte(-1)
  if first and first > 32 and first < 128 and last > 32 and last < 128 then return s end -- nearly always
  local from, to = 1, #s
  while from <= to do
    local n = s:find("^[\t-\r\x1c- ]", from) and 1 or TWO[s:sub(from, from + 1)] and 2
      or WIDE[s:sub(from, from + 2)] and 3
    if not n then break end
    from = from + n
  end
  while to >= from do
    local n = s:find("^[\t-\r\x1c- ]", to) and 1 or TWO[s:sub(to - 1, to)] and 2 or WIDE[s:sub(to - 2, to)] and 3
    if not n then break end
    to = to - n
  end
  return s:sub(from, to)
end

-- The scorer.

local NAMED <const> = { inf = math.huge, infinity = math.huge, nan = 0 / 0 }

--- Python's float(text); nil: it is no number. U+001C to U+001F are white space for str.isspace() but not for float()
--- (tested with CPython 3.11).
---@param text string
---@return number?
function rule.float(text)
  if text:find "^%d+$" then return tonumber(text) + 0.0 end
  if text:find "^[A-Za-z ]+$" and not NAMED[text:lower():match "^ *(.-) *$"] then return nil end
  local s = core.digits(text)
  s = s and s:match "^[\t-\r ]*(.-)[\t-\r ]*$"
  if not s then return nil end
  local sign, body = s:match "^([+-]?)(.*)$"
  local named = NAMED[body:lower()]
  if named then return sign == "-" and -named or named end
  -- A '_' stands between two digits.
  if body:find "^_" or body:find "_$" or body:find "[^%d]_" or body:find "_[^%d]" then return nil end
  body = body:gsub("_", "")
  local whole, part, rest = body:match "^(%d*)%.?(%d*)(.*)$"
  if not whole or #whole + #part == 0 or rest ~= "" and not rest:find "^[eE][+-]?%d+$" then return nil end
  local value = tonumber(body) + 0.0
  return sign == "-" and -value or value
end

--- A model's number: '$', '%' and ',' are left out anywhere; what is no number is infinite.
local function number_of(answer) return rule.float((answer:gsub("[$%%,]", ""))) or math.huge end

local function normal(s, punctuation_out)
  s = core.lower(without_spaces(s))
  return punctuation_out and s:gsub("[!-/:-@[-`{-~]", "") or s
end

local function same_text(answer, truth, punctuation_out)
  return normal(answer, punctuation_out) == normal(truth, punctuation_out)
end

local function pieces(s)
  local out = {}
  for piece in (s .. ","):gmatch "([^,;]*)[,;]" do out[#out + 1] = piece end
  return out
end

local function same_list(answer, truth)
  local given, wanted = pieces(answer), pieces(truth)
  if #given ~= #wanted then return false end
  for i, piece in ipairs(wanted) do
    local number = rule.float(piece)
    if number and number_of(given[i]) ~= number or not number and not same_text(given[i], piece, false) then
      return false
    end
  end
  return true
end

--- Whether the answer is right, and its route; a missing one counts as the text None.
---@param answer string?
---@param truth string
---@return boolean right, string route
function rule.score(answer, truth)
  local number = rule.float(truth)
  answer = answer or "None"
  if number then return number_of(answer) == number, "number" end
  if truth:find "[,;]" then return same_list(answer, truth), "list" end
  return same_text(answer, truth, true), "string"
end

-- The final answer in a model's text: the rest of the line after the last "FINAL ANSWER" and its optional colon, or
-- else the next line that is not empty. It is trimmed, and one layer of bold, backticks or brackets is removed. A layer
-- that opened right before the marker ("**FINAL ANSWER:** 17", "**FINAL ANSWER: 17**") belongs to the marker; its other
-- half is removed as well.

local MARKER <const> = "FINAL ANSWER"
local LAYERS <const> = { { "**", "**" }, { "`", "`" }, { "[", "]" } }

local function has_at(s, at, what) return s:sub(at, at + #what - 1) == what end

local function ends_in(s, what) return #s >= #what and s:sub(-#what) == what end

--- Whether the layer's last character closes its first: "[a]", but not "[a] [b]".
local function encloses(layer, s)
  local open, close = layer[1], layer[2]
  if #s < #open + #close or not has_at(s, 1, open) or not ends_in(s, close) then return false end
  if open == "[" then return s:find "^%b[]$" ~= nil end
  return not s:sub(#open + 1, -#close - 1):find(open, 1, true)
end

local function without_layer(s)
  for _, layer in ipairs(LAYERS) do
    if encloses(layer, s) then return strip(s:sub(#layer[1] + 1, -#layer[2] - 1)) end
  end
  return s
end

--- The first line from `at` on that is not blank, trimmed.
local function next_line(text, at)
  for line in text:sub(at):gmatch "[^\n\r]+" do
    line = strip(line)
    if line ~= "" then return line end
  end
end

local function after_marker(text, marker)
  local open, at
  for _, layer in ipairs(LAYERS) do
    if marker > #layer[1] and has_at(text, marker - #layer[1], layer[1]) then
      open = layer
      break
    end
  end
  local function close_layer()
    if open and has_at(text, at, open[2]) then at, open = at + #open[2], nil end
  end
  at = marker + #MARKER
  close_layer()
  at = text:find("[^ \t]", at) or #text + 1
  if has_at(text, at, ":") then at = at + 1 elseif has_at(text, at, "\u{FF1A}") then at = at + 3 end
  close_layer()
  local line = next_line(text, at)
  if not line then return nil end
  if open and ends_in(line, open[2]) and not encloses(open, line) then line = strip(line:sub(1, -#open[2] - 1)) end
  line = without_layer(line)
  return line ~= "" and line or nil
end

--- The answer, and where it was found: "marker", "last_line", or "none" (then it is nil).
---@param text string
---@return string? answer, string source
function rule.extract(text)
  local upper, marker, last = text:upper(), nil, nil
  local at = upper:find(MARKER, 1, true)
  while at do
    marker = at
    at = upper:find(MARKER, at + 1, true)
  end
  if marker then
    local answer = after_marker(text, marker)
    return answer, answer and "marker" or "none"
  end
  for line in text:gmatch "[^\n\r]+" do
    line = strip(line)
    if line ~= "" then last = line end
  end
  last = last and without_layer(last) or ""
  if last == "" then return nil, "none" end
  return last, "last_line"
end

return rule
