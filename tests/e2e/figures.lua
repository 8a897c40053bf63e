--- Draws every kind of figure that takes so many runs, at both widths of paper and both of a page, and looks at the
--- boxes of its texts: none leaves the figure, none lies over another; axes hold the largest bound.
local figure = require "ipw.figure"

local KINDS = { "breakdown", "timeline", "waterfall", "scatter", "distribution", "pareto", "paired", "compare" }

--- What is wrong with the texts of a figure.
local function faults(f)
  local out = {}
  for i, a in ipairs(f.texts) do
    if a.left < -0.5 or a.right > f.width + 0.5 or a.top < -0.5 or a.bottom > f.height + 0.5 then
      out[#out + 1] = ("%q leaves the figure (%.1f-%.1f, %.1f-%.1f of %.1f x %.1f)"):format(a.text, a.left, a.right,
        a.top, a.bottom, f.width, f.height)
    end
    for k = 1, i - 1 do
      local b = f.texts[k]
      local w = math.min(a.right, b.right) - math.max(a.left, b.left)
      local h = math.min(a.bottom, b.bottom) - math.max(a.top, b.top)
      if w > 0.5 and h > 0.5 then out[#out + 1] = ("%q lies over %q"):format(a.text, b.text) end
    end
  end
  return out
end

return {
  name = "figures", about = "all kinds, to look at their texts",
  runs = { 1, 26 },

  draw = function(f, runs)
    local wrong, drawn = {}, {}
    for _, name in ipairs(KINDS) do
      local kind = require("ipw.plot." .. name)
      for _, size in ipairs { { figure.column, false }, { figure.wide, false }, { 350, true }, { 1072, true } } do
        if #runs >= kind.runs[1] and #runs <= kind.runs[2] then
          local g = figure.new(size[1], size[2])
          local ok, why = pcall(kind.draw, g, runs, {})
          if not ok then
            -- what a run does not know cannot be drawn, and the reason is said
            if not tostring(why):find "^no run has both" then error(why, 0) end
            break
          end
          for _, text in ipairs(faults(g)) do
            wrong[#wrong + 1] = ("%s at %d: %s"):format(name, math.floor(size[1]), text)
          end
          if g.cut and name ~= "waterfall" then wrong[#wrong + 1] = name .. ": a bound beyond the axis" end
          if g:file():find "[%s\"]%-?nan" then wrong[#wrong + 1] = name .. ": nan" end
          if not g.caption:find "^%u.*%.$" then wrong[#wrong + 1] = name .. ": no whole sentence: " .. g.caption end
          drawn[name] = true
        end
      end
    end
    if #wrong > 0 then error(table.concat(wrong, "\n"), 0) end
    f.height = 10
    for name in pairs(drawn) do f.caption = f.caption .. name .. " " end
  end,
}
