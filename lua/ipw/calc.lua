--- ipw.calc: arithmetic expressions, by a grammar of its own; no code is loaded or run.
--
-- + - * / // % ^ (or **) and parentheses, abs ceil cos exp floor ln log log10 log2 max min round sin
-- sqrt sum tan, pi and e.  Integers stay exact while they fit 64 bits and divide evenly, else numbers
-- are doubles.  "//" and "%" round down, as in Python.  round() takes halves away from zero.
local compute = require "ipw.core.compute"

local calc = {}

--- The value of an expression.
---@param text string
---@return number? value, string? why
function calc.eval(text) return compute.call("calc_grammar", "eval", text) end

--- A number as text; doubles with 15 digits, so that 0.1 + 0.2 reads 0.3.
---@param value number
---@return string
function calc.format(value)
  local whole = value >= -2.0 ^ 53 and value <= 2.0 ^ 53 and value == value // 1
    or tostring(value):find("^%-?%d+$") -- an integer: a double has a point, an exponent or a name
  return (whole and "%d" or "%.15g"):format(value)
end

return calc
