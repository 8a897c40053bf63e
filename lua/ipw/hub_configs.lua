--- ipw.hub_configs: the configurations that a dataset's README.md declares: which files are which split.
--
-- The hub's own rule: a block `configs:` in the YAML before the text, each with config_name, default and
-- data_files: a pattern, a list of patterns, or a list of { split, path }.  Only as much of YAML is read as
-- stands in such blocks; one that says more is as if it were not there.

local configs = {}

--- The lines of the block below "configs:", each { indent, text }, without blanks and comments.
local function block_of(readme)
  local front = readme:gsub("\r\n", "\n"):match "^%-%-%-\n(.-)\n%-%-%-"
  local lines, inside = {}, false
  for line in ((front or "") .. "\n"):gmatch "([^\n]*)\n" do
    local indent, text = line:match "^( *)(.-)%s*$"
    if inside and indent == "" and text ~= "" and text:sub(1, 1) ~= "-" and text:sub(1, 1) ~= "#" then break end
    if inside and text ~= "" and text:sub(1, 1) ~= "#" then lines[#lines + 1] = { indent = #indent, text = text } end
    if line:find "^configs:%s*$" then inside = true end
  end
  return lines
end

local function scalar(text)
  local quoted = text:match '^"([^"\\]*)"%s*$' or text:match "^'([^']*)'%s*$"
  if quoted then return quoted end
  local list = text:match "^%[(.*)%]%s*$"
  if list then
    local items = {}
    for item in list:gmatch "[^,]+" do items[#items + 1] = scalar(item:match "^%s*(.-)%s*$") end
    return items
  end
  if text:find "^[{&*!|>%%@`\"']" then error("not read: " .. text, 0) end
  text = text:gsub("%s+#.*$", "")
  if text == "true" or text == "false" then return text == "true" end
  return text
end

local block

local function key_of(text) return text:match "^([%w_-]+):%s*(.*)$" end

local function mapping(lines, at, indent)
  local map = {}
  while lines[at] and lines[at].indent == indent do
    local key, rest = key_of(lines[at].text)
    if not key then error("not read: " .. lines[at].text, 0) end
    at = at + 1
    if rest ~= "" then
      map[key] = scalar(rest)
    else
      local after = lines[at]
      if after and (after.indent > indent or after.indent == indent and after.text:find "^%- ") then
        map[key], at = block(lines, at, after.indent)
      end
    end
  end
  return map, at
end

local function sequence(lines, at, indent)
  local list = {}
  while lines[at] and lines[at].indent == indent and lines[at].text:find "^%-%s" do
    local blanks, rest = lines[at].text:match "^%-(%s+)(.*)$"
    if key_of(rest) and not rest:find "^[\"']" then
      lines[at] = { indent = indent + 1 + #blanks, text = rest }
      list[#list + 1], at = mapping(lines, at, lines[at].indent)
    else
      list[#list + 1], at = scalar(rest), at + 1
    end
  end
  return list, at
end

function block(lines, at, indent)
  if lines[at].text:find "^%-%s" then return sequence(lines, at, indent) end
  return mapping(lines, at, indent)
end

local function patterns_of(value)
  return type(value) == "table" and value or { value }
end

--- { { split, patterns } } of data_files.
local function splits_of(data_files)
  local splits = {}
  if type(data_files) == "table" and #data_files == 0 then -- a map from split to patterns
    for split, path in pairs(data_files) do splits[#splits + 1] = { split = split, patterns = patterns_of(path) } end
    table.sort(splits, function(a, b) return a.split < b.split end)
  elseif type(data_files) == "table" and type(data_files[1]) == "table" then
    for _, item in ipairs(data_files) do
      if type(item.split) ~= "string" or item.path == nil then error("data_files without split and path", 0) end
      splits[#splits + 1] = { split = item.split, patterns = patterns_of(item.path) }
    end
  elseif data_files ~= nil then
    splits[1] = { split = "train", patterns = patterns_of(data_files) }
  end
  return splits
end

--- The configurations: a list of { name, default, splits = { { split, patterns } } }; nil when the README
--- declares none, or none that can be read.
---@param readme string
---@return table[]?
function configs.read(readme)
  local ok, list = pcall(function()
    local lines, out = block_of(readme), {}
    if #lines == 0 then return nil end
    local blocks, at = block(lines, 1, lines[1].indent)
    if lines[at] then error("not read: " .. lines[at].text, 0) end
    for _, one in ipairs(blocks) do
      if type(one) ~= "table" or type(one.config_name) ~= "string" then error("no config_name", 0) end
      out[#out + 1] = { name = one.config_name, default = one.default == true, splits = splits_of(one.data_files) }
    end
    return #out > 0 and out or nil
  end)
  return ok and list or nil
end

--- The one of this name; without a name the default one: so declared, called "default", or the only one.
function configs.find(list, name)
  for _, one in ipairs(list) do
    if name and one.name == name or not name and one.default then return one end
  end
  if name then return nil end
  return configs.find(list, "default") or #list == 1 and list[1] or nil
end

--- Whether a path fits a pattern: * and ? stay in one folder, ** does not.
---@param path string
---@param pattern string
---@return boolean
function configs.fits(path, pattern)
  local lua = pattern:gsub("^%./", ""):gsub("[%^%$%(%)%%%.%+%-]", "%%%0")
  lua = lua:gsub("%*%*/", "\1"):gsub("%*%*", "\2"):gsub("%*", "[^/]*"):gsub("%?", "[^/]")
  lua = lua:gsub("\2", ".*")
  -- "**/" stands for any folders, or none
  local function try(rest)
    local before, after = rest:match "^(.-)\1(.*)$"
    if not before then return path:find("^" .. rest .. "$") ~= nil end
    return try(before .. after) or try(before .. ".*/" .. after)
  end
  return try(lua)
end

return configs
