--- ipw.report.markdown: title, key numbers and breakdown, for a pull request.
local energy = require "ipw.report.energy"
local headline = require "ipw.report.headline"
local key_numbers = require "ipw.report.key_numbers"
local numbers = require "ipw.report.numbers"

local markdown = {}

--- A text of others as markdown: nothing of it is a mark, a link, a mention or markup.
function markdown.plain(text)
  text = tostring(text):gsub("%c", " "):gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" })
  return (text:gsub("[\\`*_{}%[%]()#+!|~@$]", "\\%0"))
end

local function bar(uj, wasted_uj, largest)
  local columns, wasted = uj / largest * 16, wasted_uj / largest * 16
  local hatched = wasted > 0 and math.max(1, math.floor(wasted + 0.5)) or 0
  local text = ("█"):rep(math.max(0, math.floor(columns + 0.5) - hatched)) .. ("▒"):rep(hatched)
  return "`" .. (text == "" and "·" or text) .. "`"
end

local function add_run(out, run)
  out[#out + 1] = "### " .. markdown.plain(headline.title(run))
  out[#out + 1] = ""
  for _, flag in ipairs(headline.flags(run)) do out[#out + 1] = "> " .. markdown.plain(flag[1]) end
  if out[#out] ~= "" then out[#out + 1] = "" end
  out[#out + 1] = "| | value | 95 % | how |"
  out[#out + 1] = "| --- | ---: | --- | --- |"
  for _, key in ipairs(key_numbers.list(run)) do
    out[#out + 1] = ("| %s | %s | %s | %s |"):format(key.name, key.text and (key.text .. " " .. key.unit):gsub(" $",
      "") or numbers.dash,
      key.range or "", markdown.plain(key.why or key.under or key.note or ""))
  end
  out[#out + 1] = ""
  out[#out + 1] = markdown.plain(energy.heading(run)) .. "."
  if run.no_parts or run.sum_uj == 0 then return end
  out[#out + 1] = ""
  out[#out + 1] = ("| part | joules | share | |%s"):format(run.wasted_uj > 0 and " of it wasted |" or "")
  out[#out + 1] = "| --- | ---: | ---: | --- |" .. (run.wasted_uj > 0 and " ---: |" or "")
  local largest, rest = 1, 0
  for _, part in ipairs(run.parts) do largest = math.max(largest, part.uj) end
  for i, part in ipairs(run.parts) do
    if i <= 14 then
      out[#out + 1] = ("| %s | %s | %s | %s |%s"):format(markdown.plain(part.name), numbers.cell(part.uj / 1e6),
        numbers.share(part.uj, run.sum_uj),
        bar(part.uj, part.wasted_uj, largest), run.wasted_uj > 0 and (" %s |"):format(part.wasted_uj > 0
          and numbers.cell(part.wasted_uj / 1e6) or "") or "")
    else
      rest = rest + part.uj
    end
  end
  if rest > 0 then out[#out + 1] = ("| %d more | %s | %s | |"):format(#run.parts - 14, numbers.cell(rest / 1e6),
    numbers.share(rest, run.sum_uj)) end
  out[#out + 1] = ("| **sum** | **%s** | 100 %% | |"):format(numbers.cell(run.sum_uj / 1e6))
end

---@param runs table[]
---@return string
function markdown.text(runs)
  local out = #runs > 1 and require("ipw.report.comparison").markdown(runs, markdown.plain) or {}
  for i, run in ipairs(runs) do
    if #runs > 3 then break end
    if #out > 0 then out[#out + 1] = "" end
    add_run(out, run)
  end
  if #runs > 3 then out[#out + 1] = ("\nThe parts of each run: ipw-agent report RUN --markdown.") end
  return table.concat(out, "\n")
end

return markdown
