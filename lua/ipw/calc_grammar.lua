-- The grammar of ipw.calc.  It runs in a Lua state that all queries share (src/script/compute.c),
-- so that a query does not load it: it keeps nothing between two calls, and must not.
--
-- + - * / // % ^ (or **) and parentheses, abs ceil cos exp floor ln log log10 log2 max min round sin
-- sqrt sum tan, pi and e.  Integers stay exact while they fit 64 bits; beyond that, and after a
-- division that leaves a remainder, numbers are doubles.  "/" of two integers that divides evenly
-- is an integer; "//" and "%" round down, as in Python.  round() takes halves away from zero.

local calc = {}

local byte, find, match, sub, type_of = string.byte, string.find, string.match, string.sub, math.type

local MAX_BYTES, MAX_DEPTH, MAX_ARGUMENTS, MAX_NAME = 10000, 100, 1000, 200

-- ---- numbers: each operation returns a number, or nil and what is wrong ----

local function are_integers(a, b) return type_of(a) == "integer" and type_of(b) == "integer" end

-- 3.0 becomes 3.
local function whole(x)
  return x >= -2.0 ^ 53 and x <= 2.0 ^ 53 and math.tointeger(x) or x
end

local function negate(x)
  return x == math.mininteger and 2.0 ^ 63 or -x
end

local function add(a, b)
  local sum = a + b
  -- If the sum's sign differs from the sign of both integers, it exceeds 64 bits.
  if are_integers(a, b) and (a ~ sum) & (b ~ sum) < 0 then return (a + 0.0) + b end
  return sum
end

local function multiply(a, b)
  local product = a * b
  if not are_integers(a, b) or a == 0 then return product end
  if a == -1 then return negate(b) end -- the least integer has no opposite
  if product // a == b and product % a == 0 then return product end
  return (a + 0.0) * b
end

local function divide(a, b)
  if b == 0 then return nil, "division by zero" end
  return are_integers(a, b) and b ~= -1 and a % b == 0 and a // b or a / b
end

local function floor_divide(a, b)
  if b == 0 then return nil, "division by zero" end
  if b == -1 then return math.floor(negate(a)) end
  return are_integers(a, b) and a // b or whole(a // b)
end

local function modulo(a, b)
  if b == 0 then return nil, "remainder of a division by zero" end
  return whole(a % b)
end

local function power(a, b)
  if a == 0 and b < 0 then return nil, "0 to a negative power" end
  if are_integers(a, b) and b >= 0 then
    -- By squaring: at most 64 rounds, and a double as soon as the value does not fit.
    local result = 1
    while b > 0 do
      if b & 1 == 1 then result = multiply(result, a) end
      if b > 1 then a = multiply(a, a) end
      b = b >> 1
    end
    return result
  end
  if a < 0 and b ~= math.floor(b) then return nil, "a negative number to a fraction of a power" end
  return a ^ b
end

local function round(x, digits)
  digits = digits or 0
  if math.type(digits) ~= "integer" or digits < -15 or digits > 15 then
    return nil, "round() wants a whole number of digits from -15 to 15"
  end
  if math.type(x) == "integer" and digits >= 0 then return x end
  local scale = 10.0 ^ digits
  local scaled = x * scale
  if scaled ~= scaled or math.abs(scaled) >= 2.0 ^ 52 then return x end -- no digits behind the point
  local rounded = (scaled < 0 and math.ceil(scaled - 0.5) or math.floor(scaled + 0.5)) / scale
  if digits > 0 then return tonumber(("%%.%df"):format(digits):format(rounded)) end
  return whole(rounded)
end

local function logarithm(base)
  return function(x)
    if x <= 0 then return nil, "() of a number that is not positive" end
    return whole(math.log(x, base))
  end
end

local function natural(x)
  if x <= 0 then return nil, "() of a number that is not positive" end
  return math.log(x)
end

local function log(x, base)
  if not base then return natural(x) end
  if base == 1 then return nil, "log() to the base 1" end
  if base <= 0 then return nil, "() of a number that is not positive" end
  return logarithm(base)(x)
end

local function root(x)
  if x < 0 then return nil, "sqrt() of a negative number" end
  return whole(math.sqrt(x))
end

local function sum_of(...)
  local sum = 0
  for _, x in ipairs { ... } do sum = add(sum, x) end
  return sum
end

local constants = { pi = math.pi, e = math.exp(1) }

-- Least and most arguments, and the function.
local functions = {
  abs = { 1, 1, function(x) return x < 0 and negate(x) or x end },
  ceil = { 1, 1, math.ceil },
  cos = { 1, 1, math.cos },
  exp = { 1, 1, math.exp },
  floor = { 1, 1, math.floor },
  ln = { 1, 1, natural },
  log = { 1, 2, log },
  log10 = { 1, 1, logarithm(10) },
  log2 = { 1, 1, logarithm(2) },
  max = { 1, MAX_ARGUMENTS, math.max },
  min = { 1, MAX_ARGUMENTS, math.min },
  round = { 1, 2, round },
  sin = { 1, 1, math.sin },
  sqrt = { 1, 1, root },
  sum = { 1, MAX_ARGUMENTS, sum_of },
  tan = { 1, 1, math.tan },
}

-- Precedence and function of each operator; "^" binds tighter than a sign before it.
local operators = {
  ["+"] = { 1, add },
  ["-"] = { 1, function(a, b) return add(a, negate(b)) end },
  ["*"] = { 2, multiply },
  ["/"] = { 2, divide },
  ["//"] = { 2, floor_divide },
  ["%"] = { 2, modulo },
  ["^"] = { 3, power },
}

-- ---- tokens, one at a time: r.kind is the sign itself, "number", "name" or "end"; r.at is where it
-- begins, r.after where the next one may begin, r.value what a number or a name says ----

local signs = { ["**"] = "^", ["\u{D7}"] = "*", ["\u{B7}"] = "*", ["\u{F7}"] = "/", ["\u{2212}"] = "-",
  ["\u{2013}"] = "-" }

-- Ends the parse; calc.eval() catches the error.
local function fail(at, format, ...)
  error({ fault = ("at %d: "):format(at) .. format:format(...) }, 0)
end

local function read_number(text, at)
  -- The sign of an exponent belongs to the number.
  local word = text:match("^[%d_.]+[eE][+-]%d+", at) or text:match("^[%w_.]+", at)
  local digits = word:gsub("(%d)_%f[%d]", "%1")
  if not (digits:find "^%d*%.?%d*$" or digits:find "^%d*%.?%d*[eE][+-]?%d+$") then
    fail(at, "%s is not a number", word)
  end
  return tonumber(digits), at + #word
end

local function read_sign(text, at)
  local sign = text:match("^[*/]%f[^*/]", at) or text:match("^%*%*", at) or
      text:match("^//", at) or text:match("^[-+*/%%^(),]", at) or
      text:match("^[\xC2-\xF4][\x80-\xBF]+", at) or text:sub(at, at)
  local kind = signs[sign] or sign
  if operators[kind] or kind:find "^[(),]$" then return kind, at + #sign end
  if sign == "=" then fail(at, "'=' has no place here; give only what is to be computed") end
  if sign == "$" then fail(at, "write numbers without a currency sign") end
  fail(at, "'%s' has no meaning here", sign)
end

-- Past blanks.  Almost always there is one or none, and a pattern would cost more than the byte.
local function skip(text, at)
  local char = byte(text, at)
  while char == 32 do
    at = at + 1
    char = byte(text, at)
  end
  return char and char < 32 and match(text, "^%s*()", at) or at
end

-- By byte: signs that begin no longer one, signs that may, and what a number or a name consists of.
local plain, doubled, word = {}, { [42] = "*", [47] = "/" }, { [46] = true, [95] = true }
for sign in ("+-%^(),"):gmatch "." do plain[byte(sign)] = sign end
for first, last in ("09AZaz"):gmatch "(.)(.)" do
  for char = byte(first), byte(last) do word[char] = true end
end

-- Reads a number at `at`.  Almost always it is a row of digits; false: it is none at all.
local function number_at(r, text, at, char)
  local last = at
  while char and char >= 48 and char <= 57 do
    last = last + 1
    char = byte(text, last)
  end
  if last > at and not word[char] then
    r.value, r.after = tonumber(sub(text, at, last - 1)), last
  elseif last > at or find(text, "^%.%d", at) then
    r.value, r.after = read_number(text, at)
  else
    return false
  end
  r.kind = "number"
  return true
end

-- Reads the next token.
local function advance(r)
  local text = r.text
  local at = skip(text, r.after)
  local char = byte(text, at)
  r.at = at
  if plain[char] then
    r.kind, r.after = plain[char], at + 1
  elseif not char then
    r.kind = "end"
  elseif word[char] and number_at(r, text, at, char) then
    return
  elseif word[char] and char ~= 46 then
    local name
    name, r.after = match(text, "^([%w_]+)()", at)
    r.kind, r.value = "name", name:sub(1, MAX_NAME):lower()
  elseif doubled[char] and not doubled[byte(text, at + 1)] then
    r.kind, r.after = doubled[char], at + 1
  else
    r.kind, r.after = read_sign(text, at)
  end
end

local function describe(r)
  if r.kind == "end" then return "the end" end
  return ("'%s'"):format((r.kind == "number" or r.kind == "name") and r.value or r.kind)
end

-- ---- reading, by precedence climbing ----

local COMMA = "a comma stands only between arguments; write 1000 or 1_000 for thousands"

local expression

local function take(r, kind)
  if r.kind ~= kind then return false end
  advance(r)
  return true
end

local function expect(r, kind, why, ...)
  if take(r, kind) then return end
  fail(r.at, "expected '%s' %s, found %s", kind, why:format(...), describe(r))
end

local function check(at, name, value, why)
  if value then return value end
  fail(at, "%s%s", why:sub(1, 1) == "(" and name or "", why)
end

local function call(r, name, at)
  local arguments, fn = {}, functions[name]
  if not fn then fail(at, "there is no function %s()", name) end
  if r.kind ~= ")" then
    repeat arguments[#arguments + 1] = expression(r, 1) until not take(r, ",")
  end
  expect(r, ")", "to close %s(", name)
  local least, most, n = fn[1], fn[2], #arguments
  if n < least or n > most then
    local range = least == most and ("%d argument"):format(least)
      or ("%d to %d arguments"):format(least, most)
    fail(at, "%s() takes %s, not %d", name, range, n)
  end
  return check(at, name, fn[3](table.unpack(arguments)))
end

local function named(r, name, at)
  if take(r, "(") then return call(r, name, at) end
  local value = constants[name]
  if value then return value end
  if functions[name] then fail(at, "%s needs its argument in parentheses", name) end
  fail(at, "'%s' is not known", name)
end

local function primary(r)
  local kind, value, at = r.kind, r.value, r.at
  if kind ~= "number" and kind ~= "name" and kind ~= "(" then
    fail(at, "expected a number, found %s", describe(r))
  end
  advance(r)
  if kind == "number" then return value end
  if kind == "name" then return named(r, value, at) end
  value = expression(r, 1)
  if r.kind == "," then fail(r.at, COMMA) end
  expect(r, ")", "for the '(' at %d", at)
  return value
end

-- A sign binds looser than "^" and tighter than every other operator; the right side of "^" may have a
-- sign.
local function unary(r)
  local value
  r.depth = r.depth + 1
  if r.depth > MAX_DEPTH then fail(r.at, "nested too deeply") end
  if take(r, "-") then
    value = negate(unary(r))
  elseif take(r, "+") then
    value = unary(r)
  else
    value = primary(r)
    local at = r.at
    if take(r, "^") then value = check(at, "", power(value, unary(r))) end
  end
  r.depth = r.depth - 1
  return value
end

local operand = { number = true, name = true, ["("] = true, ["-"] = true, ["+"] = true }

-- Reads operands and operators of at least the precedence `least`.
function expression(r, least)
  local value = unary(r)
  while true do
    local sign, at = r.kind, r.at
    local operator = operators[sign]
    if not operator or operator[1] < least then return value end
    advance(r)
    if sign == "%" and not operand[r.kind] then
      fail(at, "'%%' is the remainder and needs a number after it; a percentage is x/100")
    end
    value = check(at, "", operator[2](value, expression(r, operator[1] + 1)))
  end
end

local function read_all(text)
  local r = { text = text, after = 1, at = 1, kind = "end", value = false, depth = 0 }
  advance(r)
  local value = expression(r, 1)
  if r.kind == "," then fail(r.at, COMMA) end
  if r.kind ~= "end" then fail(r.at, "expected an operator, found %s", describe(r)) end
  return value
end

-- The value of an expression; or nil and a message with the position of the mistake.
function calc.eval(text)
  if #text > MAX_BYTES then return nil, "the expression is longer than 10000 bytes" end
  if skip(text, 1) > #text then return nil, "the expression is empty" end
  local good, value = pcall(read_all, text)
  if not good then
    if type(value) ~= "table" then error(value, 0) end
    return nil, value.fault
  end
  if value ~= value then return nil, "the result is not a number" end
  if value == math.huge or value == -math.huge then return nil, "the result is too large" end
  return value
end

return calc
