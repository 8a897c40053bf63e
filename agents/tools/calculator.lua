--- calculator: arithmetic with ipw.calc, which has its own grammar and never executes code.

return {
  name  = "calculator",
  about = "Computes an arithmetic expression: + - * / // % ^ and parentheses, sqrt abs min max " ..
          "round floor ceil log10 ln exp sin cos tan pi e.",
  input = {
    { "expression", "string", "For example (17.5 + 4) * 3 or round(10 / 3, 2)." },
  },
  effects = "none",
  seconds = 0,
  retries = 0,
  run = function(args)
    local calc = require "ipw.calc" -- here, so that a query loads it only when it calculates
    local value, why = calc.eval(args.expression)
    if value == nil then return nil, why end
    return calc.format(value)
  end,
}
