-- The grammar of ipw.calc.  It runs in a Lua state that all queries share (src/script/compute.c),
-- so that a query does not load it: it keeps nothing between two calls, and must not.
--
-- + - * / // % ^ (or **) and parentheses, abs ceil cos exp floor ln log log10 log2 max min round sin
-- sqrt sum tan, pi and e.  Integers stay exact while they fit 64 bits; beyond that, and after a
-- division that leaves a remainder, numbers are doubles.  "/" of two integers that divides evenly
-- is an integer; "//" and "%" round down, as in Python.  round() takes halves away from zero.

local calc = {}

local byte, match, type_of, huge = string.byte, string.match, math.type, math.huge

local MAX_BYTES <const>, MAX_DEPTH <const>, MAX_ARGUMENTS, MAX_NAME = 10000, 100, 1000, 200

-- Integers below them cannot leave 64 bits, and doubles never do.
local SAFE_SUM <const>, SAFE_FACTOR <const> = 1 << 62, 1 << 31

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
  if a < SAFE_SUM and a > -SAFE_SUM and b < SAFE_SUM and b > -SAFE_SUM then return a + b end
  local sum = a + b
  -- If the sum's sign differs from the sign of both integers, it exceeds 64 bits.
  if are_integers(a, b) and (a ~ sum) & (b ~ sum) < 0 then return (a + 0.0) + b end
  return sum
end

local function multiply(a, b)
  if a < SAFE_FACTOR and a > -SAFE_FACTOR and b < SAFE_FACTOR and b > -SAFE_FACTOR then return a * b end
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

-- ---- tokens, one at a time ----

-- The expression and its bytes; where the next token may begin; how deep the parentheses are. Locals
-- and not fields, because each use of a field is a look into a table.
local source, bytes, after, depth
-- The token: the sign itself, "number", "name" or "end"; what a number or a name says; where it begins.
local kind, value, at

local signs = { ["**"] = "^", ["\u{D7}"] = "*", ["\u{B7}"] = "*", ["\u{F7}"] = "/", ["\u{2212}"] = "-",
  ["\u{2013}"] = "-" }

-- Ends the parse; calc.eval() catches the error.
local function fail(where, format, ...)
  error({ fault = ("at %d: "):format(where) .. format:format(...) }, 0)
end

-- Reads a number that is more than a row of digits.
local function read_number()
  -- The sign of an exponent belongs to the number.
  local word = source:match("^[%d_.]+[eE][+-]%d+", at) or source:match("^[%w_.]+", at)
  local digits = word:gsub("(%d)_%f[%d]", "%1")
  if not (digits:find "^%d*%.?%d*$" or digits:find "^%d*%.?%d*[eE][+-]?%d+$") then
    fail(at, "%s is not a number", word)
  end
  kind, value, after = "number", tonumber(digits), at + #word
end

local function read_sign()
  local text = source
  local sign = text:match("^[*/]%f[^*/]", at) or text:match("^%*%*", at) or
      text:match("^//", at) or text:match("^[-+*/%%^(),]", at) or
      text:match("^[\xC2-\xF4][\x80-\xBF]+", at) or text:sub(at, at)
  kind, after = signs[sign] or sign, at + #sign
  if operators[kind] or kind:find "^[(),]$" then return end
  if sign == "=" then fail(at, "'=' has no place here; give only what is to be computed") end
  if sign == "$" then fail(at, "write numbers without a currency sign") end
  fail(at, "'%s' has no meaning here", sign)
end

-- By byte: signs that begin no longer one, signs that may, and what a number or a name consists of.
local plain, doubled, word = {}, { [42] = "*", [47] = "/" }, { [46] = true, [95] = true }
for sign in ("+-%^(),"):gmatch "." do plain[byte(sign)] = sign end
for first, last in ("09AZaz"):gmatch "(.)(.)" do
  for char = byte(first), byte(last) do word[char] = true end
end

local MOST_DIGITS <const> = 18 -- that surely fit 64 bits

-- Reads the next token.
local function advance()
  local here = after
  local char = bytes[here]
  while char and char <= 32 and (char == 32 or char >= 9 and char <= 13) do -- blanks
    here = here + 1
    char = bytes[here]
  end
  at = here
  local sign = plain[char]
  if sign then
    kind, after = sign, here + 1
  elseif not char then
    kind, after = "end", here
  elseif char >= 48 and char <= 57 then
    -- A row of digits, as almost every number is.
    local number, last = char - 48, here + 1
    char = bytes[last]
    while char and char >= 48 and char <= 57 do
      number = number * 10 + (char - 48)
      last = last + 1
      char = bytes[last]
    end
    if word[char] or last - here > MOST_DIGITS then return read_number() end
    kind, value, after = "number", number, last
  elseif char == 46 and (bytes[here + 1] or 0) >= 48 and bytes[here + 1] <= 57 then
    read_number()
  elseif word[char] and char ~= 46 then
    local name
    name, after = match(source, "^([%w_]+)()", here)
    kind, value = "name", name:sub(1, MAX_NAME):lower()
  elseif doubled[char] and not doubled[bytes[here + 1]] then
    kind, after = doubled[char], here + 1
  else
    read_sign()
  end
end

local function describe()
  if kind == "end" then return "the end" end
  return ("'%s'"):format((kind == "number" or kind == "name") and value or kind)
end

-- ---- reading, by precedence climbing ----

local COMMA = "a comma stands only between arguments; write 1000 or 1_000 for thousands"

local expression

local function take(sign)
  if kind ~= sign then return false end
  advance()
  return true
end

local function expect(sign, why, ...)
  if take(sign) then return end
  fail(at, "expected '%s' %s, found %s", sign, why:format(...), describe())
end

-- An operation or a function gave no number.
local function refuse(where, name, why)
  fail(where, "%s%s", why:sub(1, 1) == "(" and name or "", why)
end

local function call(name, where)
  local arguments, fn = {}, functions[name]
  if not fn then fail(where, "there is no function %s()", name) end
  if kind ~= ")" then
    repeat arguments[#arguments + 1] = expression(1) until not take(",")
  end
  expect(")", "to close %s(", name)
  local least, most, n = fn[1], fn[2], #arguments
  if n < least or n > most then
    local range = least == most and ("%d argument"):format(least)
      or ("%d to %d arguments"):format(least, most)
    fail(where, "%s() takes %s, not %d", name, range, n)
  end
  local result, why = fn[3](table.unpack(arguments))
  return result or refuse(where, name, why)
end

local function named(name, where)
  if take("(") then return call(name, where) end
  local constant = constants[name]
  if constant then return constant end
  if functions[name] then fail(where, "%s needs its argument in parentheses", name) end
  fail(where, "'%s' is not known", name)
end

-- Anything but a number: a constant, a call, parentheses.
local function primary()
  local first, name, where = kind, value, at
  if first ~= "name" and first ~= "(" then fail(where, "expected a number, found %s", describe()) end
  advance()
  if first == "name" then return named(name, where) end
  local result = expression(1)
  if kind == "," then fail(at, COMMA) end
  expect(")", "for the '(' at %d", where)
  return result
end

-- A sign binds looser than "^" and tighter than every other operator; the right side of "^" may have a
-- sign.
local function unary()
  local result, why
  depth = depth + 1
  if depth > MAX_DEPTH then fail(at, "nested too deeply") end
  if kind == "-" then
    advance()
    result = negate(unary())
  elseif kind == "+" then
    advance()
    result = unary()
  else
    if kind == "number" then
      result = value
      advance()
    else
      result = primary()
    end
    if kind == "^" then
      local where = at
      advance()
      result, why = power(result, unary())
      if not result then refuse(where, "", why) end
    end
  end
  depth = depth - 1
  return result
end

local operand = { number = true, name = true, ["("] = true, ["-"] = true, ["+"] = true }

-- Reads operands and operators of at least the precedence `least`.
function expression(least)
  local result, why
  result = unary()
  while true do
    local sign, where = kind, at
    local operator = operators[sign]
    if not operator or operator[1] < least then return result end
    advance()
    if sign == "%" and not operand[kind] then
      fail(where, "'%%' is the remainder and needs a number after it; a percentage is x/100")
    end
    result, why = operator[2](result, expression(operator[1] + 1))
    if not result then refuse(where, "", why) end
  end
end

local function read_all()
  advance()
  if kind == "end" then error({ fault = "the expression is empty" }, 0) end
  local result = expression(1)
  if kind == "," then fail(at, COMMA) end
  if kind ~= "end" then fail(at, "expected an operator, found %s", describe()) end
  return result
end

-- The value of an expression; or nil and a message with the position of the mistake.
function calc.eval(text)
  if #text > MAX_BYTES then return nil, "the expression is longer than 10000 bytes" end
  source, bytes, after, depth = text, { byte(text, 1, -1) }, 1, 0
  local good, result = pcall(read_all)
  source, bytes, value = nil, nil, nil
  if not good then
    if type(result) ~= "table" then error(result, 0) end
    return nil, result.fault
  end
  if result ~= result then return nil, "the result is not a number" end
  if result == huge or result == -huge then return nil, "the result is too large" end
  return result
end

return calc
