--- ipw.quantity: quantities for people: three digits, because sensors are not more exact.
local quantity = {}

quantity.unknown = "\u{2013}"

--- Three digits of 1 <= x < 1000.
local function three_digits(x) return (x < 9.995 and "%.2f" or x < 99.95 and "%.1f" or "%.0f"):format(x) end

local prefixes = { [-3] = "n", [-2] = "u", [-1] = "m", [0] = "", "k", "M", "G", "T", "P" }

--- "9.71 kJ" of 9712 and "J".
function quantity.si(x, unit)
  if not x then return quantity.unknown end
  local y, p = math.abs(x), 0
  if y < 1e-12 then return "0 " .. unit end
  while y >= 999.5 and p < 5 do y, p = y / 1000, p + 1 end
  while y < 0.9995 and p > -3 do y, p = y * 1000, p - 1 end
  return ("%s%s %s%s"):format(x < 0 and "-" or "", three_digits(y), prefixes[p], unit)
end

--- "421 ms", "58.2 s", "1m42s", "2h05m".
function quantity.seconds(s)
  if not s or s < 0 then return quantity.unknown end
  if s < 99.95 then return quantity.si(s, "s") end
  local whole = math.floor(s + 0.5)
  if whole < 3600 then return ("%dm%02ds"):format(whole // 60, whole % 60) end
  whole = math.floor(s / 60 + 0.5)
  return ("%dh%02dm"):format(whole // 60, whole % 60)
end

--- "68.4 %" of 0.684.
function quantity.percent(share) return share and ("%.1f %%"):format(100 * share) or quantity.unknown end

--- "1204", "51200", "12.5".
function quantity.count(x)
  if not x then return quantity.unknown end
  return (math.abs(x) >= 1e4 and math.abs(x) < 1e9 and "%.0f" or "%.4g"):format(x)
end

--- A whole number: "204", "1,204", "51.2k".
function quantity.whole(n)
  if not n or n < 0 then return quantity.unknown end
  if n >= 10000 then return (quantity.si(n, ""):gsub(" ", "")) end
  return n >= 1000 and ("%d,%03d"):format(n // 1000, n % 1000) or ("%d"):format(n)
end

--- Money: "0.0142 USD", three digits without a prefix.
function quantity.money(x)
  if not x then return quantity.unknown end
  return ("%." .. quantity.scale("USD", x).places .. "f USD"):format(x)
end

--- By unit: "%", "s", "USD", nil (a count), else an SI unit.
function quantity.of(x, unit)
  if not x then return quantity.unknown end
  if unit == "USD" then return quantity.money(x) end
  if not unit then return quantity.count(x) end
  if unit == "%" then return quantity.percent(x) end
  if unit == "s" and x >= 0 then return quantity.seconds(x) end
  return quantity.si(x, unit)
end

--- Size, unit ("pt": points, of a difference of shares) and decimal places that a value and its interval share, so
--- that they compare by eye.
function quantity.scale(unit, ...)
  local most = 0
  for _, x in pairs { ... } do most = math.max(most, math.abs(x)) end
  if unit == "%" or unit == "pt" then
    return { size = 0.01, unit = " " .. unit, places = most >= 0.9995 and 0 or 1 }
  end
  if unit == "USD" then
    local places = most > 0 and 2 - math.floor(math.log(most, 10)) or 0
    return { size = 1, unit = " USD", places = math.max(most > 0 and 2 or 0, math.min(places, 9)) }
  end
  local p = 0
  if most > 0 and (unit or most >= 1e5) then
    local y = most
    while y >= 999.5 and p < 2 do y, p = y / 1000, p + 1 end
    while y < 0.9995 and p > -2 do y, p = y * 1000, p - 1 end
  end
  local size = 1000.0 ^ p
  local shown, text = most / size, prefixes[p] .. (unit or "")
  return { size = size, unit = text ~= "" and " " .. text or "", places = shown >= 99.95 and 0 or shown >= 9.995 and
    1 or 2 }
end

--- "4.90 to 15.1 J": two bounds in one unit, that of the larger.
function quantity.range(lo, hi, unit)
  if not lo or not hi then return quantity.unknown end
  local scale = quantity.scale(unit, hi)
  local function digits(x)
    local y = x / scale.size
    return ("%." .. (y == 0 and 0 or y < 9.995 and 2 or y < 99.95 and 1 or 0) .. "f"):format(y)
  end
  return ("%s to %s%s"):format(digits(lo), digits(hi), scale.unit)
end

--- "+112" in that scale; "+112 J" with its unit.
function quantity.signed(x, scale, with_unit)
  return ("%+." .. scale.places .. "f%s"):format(x / scale.size, with_unit and scale.unit or "")
end

--- "[+99, +104]", or "".
function quantity.interval(lo, hi, scale)
  if not lo then return "" end
  return ("[%s, %s]"):format(quantity.signed(lo, scale), quantity.signed(hi, scale))
end

return quantity
