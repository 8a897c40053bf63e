--- ipw.report.books: do the numbers add up, and how is the run repeated: the small print.
local html = require "ipw.report.html"
local numbers = require "ipw.report.numbers"

local books = { id = "books", nav = "Books", topic = "Books" }

local palette = require "ipw.palette"

local function exact(joules) return ("%.6f"):format(joules) end

--- A line for each domain: its ledger to the microjoule, or why there is none.
function books.ledger(run)
  local lines = {}
  for _, domain in ipairs { "gpu", "cpu", "dram", "machine" } do
    local row = (run.summary.ledger or {})[domain]
    if row and row.total_j then
      local parts = { exact(row.queries_j or 0) .. " J queries" }
      if (row.warmup_j or 0) ~= 0 then parts[#parts + 1] = exact(row.warmup_j) .. " J warm-up" end
      if (row.wasted_j or 0) ~= 0 then parts[#parts + 1] = exact(row.wasted_j) .. " J earlier attempts" end
      parts[#parts + 1] = exact(row.idle_j or 0) .. " J idle"
      lines[#lines + 1] = ("%s %s J = %s: %s"):format(palette.domain[domain], exact(row.total_j), table.concat(parts,
        " + "),
        row.balanced == false and "does not balance by " .. exact(row.difference_j or 0) .. " J" or "balances")
    elseif row then
      local partial = row.partial_j and (", measured in part: %s J"):format(exact(row.partial_j)) or ""
      lines[#lines + 1] = ("%s: not measured (%s)%s"):format(palette.domain[domain], (row.reason
        or "not known"):gsub("_", " "), partial)
    end
  end
  return lines
end

function books.own(run)
  local own = run.summary.own_overhead
  if not own then return "The CPU time of the program itself is not known." end
  return ("The program itself took %s s of CPU time, %s of one core%s."):format(
    numbers.plain((own.runner_cpu_s or 0) + (own.sampler_cpu_s or 0), 2), numbers.share(own.share or 0, 1),
    own.estimated_joules and (", about %s J"):format(numbers.plain(own.estimated_joules, 2)) or "")
end

local function shell(word)
  if word:find "^[%w%-_./:=,@+]+$" then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

--- The command that repeats the run; nil in a redacted run.
function books.command(run)
  local command = run.manifest.command
  if not command or not command.args then return nil end
  local words = { "ipw-agent run" }
  for _, word in ipairs(command.args) do words[#words + 1] = shell(tostring(word)) end
  return table.concat(words, " ")
end

function books.identity(run)
  local out, hashes = {}, run.manifest.hashes or {}
  for _, name in ipairs { "agent", "dataset", "configuration", "model" } do
    if hashes[name] then out[#out + 1] = name .. " " .. hashes[name]:sub(1, 12) end
  end
  return out
end

function books.html(run)
  local lines = {}
  for _, line in ipairs(books.ledger(run)) do lines[#lines + 1] = html.text(line) end
  local program = run.manifest.program or {}
  local command = books.command(run)
  local identity = books.identity(run)
  return ('<section id="' .. html.prefix .. 'books" class="smallprint" aria-label="Books"><p><b>Books.</b> ' ..
    '%s.</p><p>%s</p>%s<p>%s ' ..
    '%s, trace format %s%s. This file loads nothing from anywhere.</p></section>'):format(
    table.concat(lines, ". "), html.text(books.own(run)),
    command and '<p>To repeat the run: <code>' .. html.text(command) .. "</code></p>" or "",
    html.text(program.name or "ipw-agent"), html.text(program.version or "?"), html.text(run.summary.schema_version
      or "?"),
    #identity > 0 and "; SHA-256 of " .. html.text(table.concat(identity, ", ")) or "")
end

return books
