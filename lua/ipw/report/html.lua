--- ipw.report.html: pieces of a page. Texts of others always pass text(): they are text, never markup.
local export = require "ipw.export"
local json = require "ipw.json"

local html = {}

--- What comes before the ids of the run that is being written: "" for the first.
html.prefix = ""

--- The attribute id="..." of an element of the run that is being written.
---@param name string
---@return string
function html.id(name) return ('id="%s%s"'):format(html.prefix, name) end

local escapes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

--- A text as markup.
---@param value any
---@return string
function html.text(value) return (tostring(value):gsub("[&<>\"']", escapes)) end

--- A text of others: it cannot turn the direction of what stands around it.
function html.name(value) return "<bdi>" .. html.text(value) .. "</bdi>" end

--- A text of others in the address of a link.
function html.address(text)
  return (tostring(text):gsub("[^%w%-_.]", function(c) return ("%%%02X"):format(c:byte()) end))
end

--- Markup in which no line breaks between a number and its unit.
---@param markup string
---@return string
function html.keep(markup)
  markup = markup:gsub("(%d) %%", "%1\u{A0}%%"):gsub("(%d) (k?[JWs])%f[%W]", "%1\u{A0}%2")
  return (markup:gsub("r\u{B2} ", "r\u{B2}\u{A0}"):gsub("%f[%w]n (%d)", "n\u{A0}%1"))
end

--- JSON inside a script element.
---@param encoded string JSON
---@return string
function html.data(id, encoded)
  encoded = encoded:gsub("<", "\\u003c"):gsub("\u{2028}", "\\u2028"):gsub("\u{2029}", "\\u2029")
  return ('<script type="application/json" id="%s">%s</script>\n'):format(id, encoded)
end

--- A coordinate with at most two decimals.
---@param x number
---@return string
function html.px(x)
  local text = ("%.2f"):format(x)
  return (text:gsub("%.?0+$", ""))
end

--- Fills %NAME% with numbers and texts that are markup already.
---@param template string
---@param values table<string, any>
---@return string
function html.fill(template, values)
  return (template:gsub("%%([%a_]+)%%", function(name)
    local value = values[name]
    if value == nil then error("ipw.report.html: no value for %" .. name .. "%", 2) end
    return type(value) == "number" and html.px(value) or tostring(value)
  end))
end

--- A table of the page: columns {name, class}, rows of markup. `caption` is for who cannot see the chart.
---@param columns table[]
---@param rows table[]
---@param class? string
---@return string
function html.table(columns, rows, class)
  local out = { ('<table class="%s"><thead><tr>'):format(class or "") }
  for _, column in ipairs(columns) do
    out[#out + 1] = ('<th scope="col" class="%s">%s</th>'):format(column[2] or "", column[1])
  end
  out[#out + 1] = "</tr></thead><tbody>"
  for _, row in ipairs(rows) do
    out[#out + 1] = row.class and ('<tr class="%s">'):format(row.class) or "<tr>"
    for i, column in ipairs(columns) do
      out[#out + 1] = ('<td class="%s">%s</td>'):format(column[2] or "", row[i] or "")
    end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</tbody></table>"
  return table.concat(out)
end

--- The numbers of a chart as CSV, in an element that the button "CSV" saves.
---@param name string
---@param columns string[]
---@param rows table[]
---@return string
function html.csv(name, columns, rows)
  local out = { export.csv_row(columns, #columns) }
  for _, row in ipairs(rows) do out[#out + 1] = export.csv_row(row, #columns) end
  return html.data("csv-" .. html.prefix .. name, json.encode(table.concat(out)))
end

--- A section: its topic, its heading (a sentence), the buttons, and what it holds.
function html.section(id, topic, heading, body, buttons)
  local row = {}
  for _, button in ipairs(buttons or {}) do
    row[#row + 1] = ('<button type="button" class="tool js" data-%s="%s">%s</button>'):format(button[1],
      button[2]:gsub("^csv%-", ""):gsub("^", html.prefix), button[3])
  end
  id = html.prefix .. id
  local head = ('<div class="head"><div><p class="topic">%s</p><h2 id="h-%s">%s</h2></div>'):format(topic, id,
      html.keep(heading))
    .. '<div class="tools">' .. table.concat(row) .. "</div></div>"
  return ('<section id="%s" aria-labelledby="h-%s">%s\n%s</section>\n'):format(id, id, head, body)
end

return html
