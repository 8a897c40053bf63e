--- ipw.loose: reads JSON as models write it.
--
-- Pure.  `balanced` finds the end of an object or list inside other text; `decode` reads strict JSON,
-- or text that becomes JSON when `mend` has repaired it.

local json = require "ipw.json"

local loose = {}

--- The end of the balanced { } or [ ] that begins at `from`, or nil.  Strings in double quotes are
-- skipped with their escapes.  A single quote opens a string only where a value can begin; elsewhere it
-- is an apostrophe.
function loose.balanced(text, from)
  local depth, at, can_open = 0, from, true
  while at <= #text do
    local c = text:sub(at, at)
    if c == '"' or (c == "'" and can_open) then
      local quote = c
      at = at + 1
      while true do
        local hit = text:find("[\\" .. quote .. "]", at)
        if not hit then return nil end
        if text:sub(hit, hit) == quote then at = hit break end
        at = hit + 2
      end
      can_open = false
    elseif c == "{" or c == "[" then
      depth, can_open = depth + 1, true
    elseif c == "}" or c == "]" then
      depth, can_open = depth - 1, false
      if depth == 0 then return at end
    elseif c == "," or c == ":" then
      can_open = true
    elseif not c:find("%s") then
      can_open = false
    end
    at = at + 1
  end
  return nil
end

local ESCAPES = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
local WORDS = { True = "true", False = "false", None = "null" }

--- Repairs text that is nearly JSON: Python's quotes and words, raw control characters and stray
-- backslashes in strings, trailing commas.
function loose.mend(text)
  local out, at = {}, 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == '"' or c == "'" then
      local quote = c
      out[#out + 1] = '"'
      at = at + 1
      while at <= #text do
        c = text:sub(at, at)
        if c == quote then break end
        if c == "\\" then
          local follows = text:sub(at + 1, at + 1)
          if follows == "'" then out[#out + 1] = "'"
          elseif follows:find('["\\/bfnrtu]') then out[#out + 1] = c .. follows
          else out[#out + 1] = "\\\\" .. (ESCAPES[follows] or follows) end
          at = at + 2
        else
          out[#out + 1] = c == '"' and '\\"' or ESCAPES[c] or c
          at = at + 1
        end
      end
      out[#out + 1] = '"'
      at = at + 1
    elseif c == "," and text:find("^%s*[}%]]", at + 1) then
      at = at + 1
    elseif c:find("%a") then
      local word = text:match("^%a+", at)
      out[#out + 1] = WORDS[word] or word
      at = at + #word
    else
      out[#out + 1] = c
      at = at + 1
    end
  end
  return table.concat(out)
end

function loose.decode(text)
  local value, why = json.decode(text)
  if value ~= nil then return value end
  local again = json.decode(loose.mend(text))
  if again ~= nil then return again end
  return nil, why
end

return loose
