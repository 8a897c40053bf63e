--- ipw.calc: arithmetic expressions, by a grammar of our own; nothing is loaded or run.
--
-- + - * / // % ^ (or **) and parentheses, abs ceil cos exp floor ln log log10 log2 max min round sin
-- sqrt sum tan, pi and e.  Integers stay exact while they fit 64 bits; beyond that, and after a
-- division that leaves a remainder, numbers are doubles.  "/" of two integers that divides evenly
-- is an integer; "//" and "%" round down, as in Python.  round() takes halves away from zero.

local core = require "ipw.core.calc"

local calc = {}

--- The number, or nil and a message with the position of the fault.
---@param text string
---@return number? value, string? why
calc.eval = core.eval

--- A number as text; doubles with 15 digits, so that 0.1 + 0.2 reads 0.3.
---@param value number
---@return string
calc.format = core.format

return calc
