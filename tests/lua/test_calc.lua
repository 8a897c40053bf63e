-- The expression grammar: results, exactness, messages.
local calc = require "ipw.calc"

local cases = {}
local function case(name, fn) cases[#cases + 1] = { name, fn } end

local function gives(expression, want)
  local value, why = calc.eval(expression)
  if value == nil then error(("%s: %s"):format(expression, why), 2) end
  local got = calc.format(value)
  if got ~= want then error(("%s: got %s, want %s"):format(expression, got, want), 2) end
end

local function refuses(expression, ...)
  local value, why = calc.eval(expression)
  if value ~= nil then error(("%s: gives %s"):format(expression, tostring(value)), 2) end
  for _, part in ipairs { ... } do
    if not why:find(part, 1, true) then error(("%s: %q lacks %q"):format(expression, why, part), 2) end
  end
end

local table_of_results = {
  { "2 + 2", "4" }, { "2+3*4", "14" }, { "(2+3)*4", "20" }, { "10-4-3", "3" }, { "2*-3", "-6" },
  { "-2^2", "-4" }, { "(-2)^2", "4" }, { "2^3^2", "512" }, { "2**10", "1024" }, { "2^-1", "0.5" },
  { "--3", "3" }, { "+-+3", "-3" }, { "7/2", "3.5" }, { "6/3", "2" }, { "-6/3", "-2" },
  { "7//2", "3" }, { "-7//2", "-4" }, { "7%3", "1" }, { "-7%3", "2" }, { "7.5%2", "1.5" },
  { "7.5//2", "3" }, { "8/-1", "-8" }, { "0.1+0.2", "0.3" }, { "1e3", "1000" }, { "1.5e-3*2", "0.003" },
  { "1_000*2", "2000" }, { "1_000_000 + 1", "1000001" }, { ".5*4", "2" }, { "5.", "5" },
  { "3 \u{D7} 4", "12" }, { "12 \u{F7} 4", "3" }, { "5 \u{2212} 3", "2" },
  { "9223372036854775807", "9223372036854775807" },
  { "9223372036854775806+1", "9223372036854775807" },
  { "9223372036854775807+1", "9.22337203685478e+18" },
  { "-9223372036854775807-1", "-9223372036854775808" },
  { "(-9223372036854775807-1)*-1", "9.22337203685478e+18" },
  { "(-9223372036854775807-1)//-1", "9.22337203685478e+18" },
  { "(-9223372036854775807-1)/-1", "9.22337203685478e+18" },
  { "-(-9223372036854775807-1)", "9.22337203685478e+18" },
  { "3037000500*3037000500", "9.22337203700025e+18" }, { "3^39", "4052555153018976267" },
  { "2^62", "4611686018427387904" }, { "2^63", "9.22337203685478e+18" }, { "0^0", "1" },
  { "4611686018427387904*2-1", "9.22337203685478e+18" }, { "2^0.5", "1.4142135623731" },
  { "sqrt(16)", "4" }, { "sqrt(2)", "1.4142135623731" }, { "abs(-3)", "3" }, { "abs(2-5.5)", "3.5" },
  { "min(3, 1, 2)", "1" }, { "max(3)", "3" }, { "max(1.5, 1)", "1.5" }, { "sum(1, 2, 3.5)", "6.5" },
  { "round(2.5)", "3" }, { "round(-2.5)", "-3" }, { "round(2.4)", "2" }, { "round(846.25)", "846" },
  { "round(3.14159, 2)", "3.14" }, { "round(1234, -2)", "1200" }, { "round(7, 2)", "7" },
  { "floor(-1.5)", "-2" }, { "ceil(1.2)", "2" }, { "floor(7)", "7" }, { "ln(e)", "1" },
  { "log(e)", "1" }, { "log(8, 2)", "3" }, { "log10(1000)", "3" }, { "log2(1024)", "10" },
  { "exp(0)", "1" }, { "round(sin(pi/2), 9)", "1" }, { "cos(0)", "1" }, { "tan(0)", "0" },
  { "7.5//-1", "-8" }, { "-7.5//-1", "7" }, { "7//-2", "-4" }, { "-7//-2", "3" }, { "6//-2", "-3" }, { "7//0.5", "14" },
  { "7%-3", "-2" }, { "-7%-3", "-1" }, { "6%-3", "0" }, { "7%-1", "0" }, { "7.5%-2", "-0.5" }, { "-7.5%2", "0.5" },
  { "-7.5%-2", "-1.5" }, { "6.5%-6.5", "0" }, { "-8%2.5", "2" }, { "7/0.5", "14" }, { "0.5/2", "0.25" },
  { "(-2)^3.0", "-8" }, { "2^-2", "0.25" }, { "4.0^2", "16" }, { "0.0^2", "0" }, { "(-4)^-1", "-0.25" },
  { "abs(3)", "3" }, { "abs(0-2.5)", "2.5" }, { "ceil(7)", "7" }, { "ceil(-1.5)", "-1" },
  { "floor(1e300)", "1e+300" }, { "round(1e300, 2)", "1e+300" }, { "round(-3.14159, 3)", "-3.142" },
  { "round(1250.5, -2)", "1300" }, { "round(0.5, 15)", "0.5" }, { "log(100, 10)", "2" }, { "log(27, 3)", "3" },
  { "log2(8)", "3" }, { "log10(0.001)", "-3" }, { "min(2, 1.5)", "1.5" }, { "max(1, 2, 1.5)", "2" }, { "sum(1)", "1" },
  { "1E3", "1000" }, { "1e+3", "1000" }, { "2e-1", "0.2" }, { "1_0.2_5", "10.25" },
  { "PI*2", "6.28318530717959" }, { "(412 * 35 + 268 * 25) / 60", "352" }, { " 1\n+\t1 ", "2" },
}
for _, row in ipairs(table_of_results) do
  case(row[1]:gsub("%s+", " "), function() gives(row[1], row[2]) end)
end

case("what cannot be computed says so, and where", function()
  refuses("1/0", "at 2", "division by zero")
  refuses("5 // (2-2)", "division by zero")
  refuses("5 % 0", "division by zero")
  refuses("0^-1", "negative power")
  refuses("(-8)^0.5", "negative number")
  refuses("sqrt(-1)", "sqrt() of a negative")
  refuses("ln(0)", "not positive")
  refuses("log(5, 1)", "base 1")
  refuses("10^400", "too large")
  refuses("log(0, 2)", "not positive")
  refuses("log(5, 0)", "not positive")
  refuses("log(5, 0 - 2)", "not positive")
  refuses("log(0-1)", "not positive")
  refuses("log10(0)", "not positive")
  refuses("log2(0-1)", "not positive")
  refuses("5.5 // 0", "division by zero")
  refuses("5.5 / 0.0", "division by zero")
  refuses("5 % 0.0", "division by zero")
  refuses("0.0^-0.5", "negative power")
  refuses("round(1, 16)", "from -15 to 15")
  refuses("round(1, -16)", "from -15 to 15")
  refuses("1e999", "too large")
end)
case("what is no expression says so, and where", function()
  refuses("", "empty")
  refuses("  ", "empty")
  refuses("2 +", "at 4", "the end")
  refuses("2 3", "at 3", "operator", "'3'")
  refuses("(2", "')'", "'(' at 1", "the end")
  refuses("2)", "at 2", "')'")
  refuses("2 $ 3", "currency")
  refuses("x + 1", "at 1", "'x' is not known")
  refuses("foo(1)", "no function foo()")
  refuses("sqrt 4", "parentheses")
  refuses("sqrt()", "1 argument, not 0")
  refuses("round(1, 2, 3)", "1 to 2 arguments, not 3")
  refuses("round(1, 0.5)", "whole number of digits")
  refuses("1,000 + 1", "at 2", "1_000")
  refuses("(1,000)", "1_000")
  refuses("20%", "remainder", "x/100")
  refuses("20% + 3*", "the end")
  refuses("x = 3", "at 3", "'='")
  refuses("3 = 3", "'='")
  refuses("0x10", "not a number")
  refuses("1__0", "not a number")
  refuses("1.2.3", "not a number")
  refuses("5m", "not a number")
  refuses("1e", "not a number")
  refuses("1e+", "not a number")
  refuses("1ex", "not a number")
  refuses("1_", "not a number")
  refuses("_1", "'_1' is not known")
  refuses("1e5.5", "not a number")
  refuses("2 pi", "operator", "'pi'")
  refuses("2 (3)", "operator", "'('")
  refuses("(2 pi", "')'", "'pi'")
  refuses("max(1, pi 3)", "'3'")
  refuses("2 // // 3", "'//'")
  refuses("max(,1)", "','")
  refuses("\u{F7}", "'")
  refuses("\xF0\x9F", "no meaning")
  refuses("\xFF", "no meaning")
  refuses("\xC3", "no meaning")
  refuses("os.exit()", "at 3", "'.'")
  refuses("os + 1", "'os' is not known")
  refuses("2 \u{20AC}", "no meaning")
  refuses('print("x")', "no meaning")
end)
case("limits", function()
  refuses(("("):rep(5000) .. "1", "nested too deeply")
  refuses(("-"):rep(5000) .. "1", "nested too deeply")
  refuses(("1+"):rep(6000) .. "1", "longer than")
  gives(("1+"):rep(4000) .. "1", "4001")
  gives(("("):rep(40) .. "1" .. (")"):rep(40), "1")
  refuses("2^^3", "expected a number")
  refuses("2^9223372036854775807", "too large")
  refuses("2^9223372036854775807 * 0", "not a number")
end)

case("the state that all queries share takes listed modules and plain values only", function()
  local compute = require "ipw.core.compute"
  assert(not pcall(compute.call, "tools", "open"), "another module")
  assert(not pcall(compute.call, "calc_grammar", "eval", {}), "a table")
  assert(not pcall(compute.call, "calc_grammar", "nothing", "1"), "no such function")
  assert(not pcall(compute.call, "calc_grammar", "eval", 1 == 1), "no text")
  -- After an error the state is another one, and works.
  gives("2 + 3 * 4", "14")
end)

return cases
