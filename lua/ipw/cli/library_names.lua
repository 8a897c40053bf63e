--- ipw.cli.library_names: finds names in a script that the library does not have.
--
-- It reads the script's tokens and understands plain uses: `local http = require "ipw.http"` (also
-- several in one statement), then http.name and http:name, or `require("ipw.http").name`.  It compares
-- them with the table that require returns.  It reports nothing if the use may be intended: the local
-- name also stands for something else (a parameter, another local, an assignment), the script sets the
-- name itself, or it tests for the name (`http.name and`, `if http.name`, `http.name == nil`).

local nearest = require("ipw.core.script").nearest

local OPENS = { ["function"] = "block", ["do"] = "block", ["if"] = "block", ["repeat"] = "block",
                ["{"] = "{", ["("] = "(", ["["] = "[" }
local CLOSES = { ["end"] = true, ["until"] = true, ["}"] = true, [")"] = true, ["]"] = true }
local ASKS = { ["and"] = true, ["or"] = true, ["then"] = true, ["=="] = true, ["~="] = true }

--- The end of the long bracket that opens at `at`, or nil if none opens there.
local function long_bracket(source, at)
  local level = source:match("^%[(=*)%[", at)
  if not level then return nil end
  local _, stop = source:find("]" .. level .. "]", at, true)
  return stop or #source
end

local function quoted(source, at)
  local quote, i = source:sub(at, at), at + 1
  while i <= #source do
    local c = source:sub(i, i)
    if c == quote or c == "\n" then return i end
    i = i + (c == "\\" and 2 or 1)
  end
  return #source
end

--- The tokens: { text, line, kind }; kind: "name", "string" (text: its content) or "mark".
local function tokens_of(source)
  local tokens, at, line = {}, 1, 1
  local function add(kind, text, stop)
    tokens[#tokens + 1] = { kind = kind, text = text, line = line }
    for _ in source:sub(at, stop):gmatch "\n" do line = line + 1 end
    at = stop + 1
  end
  local function pass(stop)
    for _ in source:sub(at, stop):gmatch "\n" do line = line + 1 end
    at = stop + 1
  end
  if source:sub(1, 1) == "#" then pass((source:find("\n", 1, true) or #source + 1) - 1) end
  while at <= #source do
    local c = source:sub(at, at)
    if c:find "%s" then
      pass((source:find("%S", at) or #source + 1) - 1)
    elseif source:sub(at, at + 1) == "--" then
      pass(long_bracket(source, at + 2) or (source:find("\n", at, true) or #source + 1) - 1)
    elseif c:find "[%a_]" then
      local text = source:match("^[%w_]+", at)
      add("name", text, at + #text - 1)
    elseif c:find "%d" then
      local text = source:match("^[%w_.]+", at)
      add("mark", "0", at + #text - 1)
    elseif c == '"' or c == "'" then
      local stop = quoted(source, at)
      add("string", source:sub(at + 1, stop - 1), stop)
    elseif long_bracket(source, at) then
      local stop = long_bracket(source, at)
      add("string", "", stop)
    else
      local text = source:match("^%.%.%.?", at) or source:match("^[=~<>]=", at)
        or source:match("^::", at) or c
      add("mark", text, at + #text - 1)
    end
  end
  return tokens
end

--- The text of token i; "" for a string and after the last token.
local function text_at(tokens, i)
  local token = tokens[i]
  return token and token.kind ~= "string" and token.text or ""
end

--- The module of a plain require at token i, and the place after it; or nil.
local function required(tokens, i)
  if text_at(tokens, i) ~= "require" then return nil end
  local open = text_at(tokens, i + 1) == "("
  local name = tokens[open and i + 2 or i + 1]
  if not name or name.kind ~= "string" or (open and text_at(tokens, i + 3) ~= ")") then return nil end
  return name.text, i + (open and 4 or 2)
end

--- The meaning of each local name: a module's name, or false if it (also) stands for something else.
local function follow_locals(tokens)
  local means = {}
  local function declare(name, module)
    if means[name] ~= nil and means[name] ~= module then module = false end
    means[name] = module
  end
  --- The names from i on, separated by commas, with <attributes>; and the place after them.
  local function list_of(i)
    local list = {}
    while tokens[i] and tokens[i].kind == "name" do
      list[#list + 1] = tokens[i].text
      i = i + 1
      if text_at(tokens, i) == "<" then i = i + 3 end
      if text_at(tokens, i) ~= "," then break end
      i = i + 1
    end
    return list, i
  end

  local open = {}      -- the brackets and blocks that are open: "block", "{", "(" or "["
  local declared = 0   -- names before this place are being declared
  for i, token in ipairs(tokens) do
    local text, before = text_at(tokens, i), text_at(tokens, i - 1)
    if text == "local" and text_at(tokens, i + 1) == "function" then
      declare(text_at(tokens, i + 2), false)
    elseif text == "local" then
      local list, at = list_of(i + 1)
      declared = at
      local plain = text_at(tokens, at) == "="
      for _, name in ipairs(list) do
        local module, behind
        if plain then module, behind = required(tokens, at + 1) end
        local follows = behind and text_at(tokens, behind)
        -- After a call, an index or an operator the value is not the module.
        plain = module and not (follows:find "^[.:%[({+%-*/%%^&|~<>=]" or ASKS[follows])
          and not (tokens[behind] and tokens[behind].kind == "string")
        declare(name, plain and module or false)
        if plain then at, plain = behind, follows == "," end
      end
    elseif text == "for" then
      local list
      list, declared = list_of(i + 1)
      for _, name in ipairs(list) do declare(name, false) end
    elseif text == "function" then
      local at = i + 1
      while tokens[at] and text_at(tokens, at) ~= "(" do at = at + 1 end
      for _, name in ipairs((list_of(at + 1))) do declare(name, false) end
      if at == i + 2 then declare(text_at(tokens, i + 1), false) end
    elseif means[text] and token.kind == "name" and i >= declared
      and before ~= "." and before ~= ":" then
      -- An assignment, alone or in a list; but not a field of a table's constructor.
      local field = open[#open] == "{" and (before == "{" or before == "," or before == ";")
      local _, at = list_of(i)
      if text_at(tokens, at) == "=" and not field then means[text] = false end
    end
    if OPENS[text] then open[#open + 1] = OPENS[text] end
    if CLOSES[text] then open[#open] = nil end
  end
  return means
end

--- The uses: { module, name, line }; and the names that the script sets or tests for.
local function uses_of(tokens, means)
  local uses, own = {}, {}
  for i, token in ipairs(tokens) do
    local before, module, at = text_at(tokens, i - 1), nil, nil
    if before ~= "." and before ~= ":" and token.kind == "name" then
      module, at = required(tokens, i)
      if not module then module, at = means[token.text], i + 1 end
    end
    local mark, name = at and text_at(tokens, at), at and tokens[at + 1]
    if module and (mark == "." or mark == ":") and name and name.kind == "name" then
      local follows = text_at(tokens, at + 2)
      own[module] = own[module] or {}
      if follows == "=" or before == "function" or before == "not" or ASKS[follows] then
        own[module][name.text] = true
      end
      uses[#uses + 1] = { module = module, name = name.text, line = name.line }
    end
  end
  return uses, own
end

--- The names of a module, and of its rest, which is loaded when it is first used.
local function names_of(library)
  local names, meta = {}, getmetatable(library)
  for _, part in ipairs { library, meta and meta.rest and require(meta.rest) } do
    for name in pairs(part) do
      if type(name) == "string" then names[#names + 1] = name end
    end
  end
  table.sort(names)
  return names
end

--- The unknown names in a script's source: a list of { line, why }.
return function(source)
  local tokens = tokens_of(source)
  local uses, own = uses_of(tokens, follow_locals(tokens))
  local problems, said = {}, {}
  for _, use in ipairs(uses) do
    local place = use.module .. "." .. use.name
    local ours = use.module == "ipw" or use.module:find "^ipw%."
    if ours and not own[use.module][use.name] and not said[place] then
      said[place] = true
      local found, library = pcall(require, use.module)
      if found and type(library) == "table" and library[use.name] == nil then
        local near = nearest(use.name, names_of(library))
        local meant = near and ("; did you mean \"%s\"?"):format(near) or ""
        problems[#problems + 1] = {
          line = use.line, why = ("%s has no \"%s\"%s"):format(use.module, use.name, meant),
        }
      end
    end
  end
  return problems
end
