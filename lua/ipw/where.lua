--- ipw.where: the small expressions of `--where`, over the columns of a dataset's rows.
--
--   level == 2 and not (subject == "Algebra" or `Final answer` != "")
--
-- A column is a word or, with blanks in it, a name in backticks; `a.b` is the member b of the column
-- a.  Literals are numbers, texts in single or double quotes, true, false and null.  Operators are ==,
-- !=, <, <=, >, >=, and, or, not.  A number and a text that reads as a number compare as numbers, for
-- datasets write a level either way.  A missing value equals null alone, and is in no order.
--
-- compile(text) reads an expression once; the function that it gives decides about a record.  This
-- module reads no files and knows no dataset.

local where = {}

local DEPTH_MAX = 100
local TWO = { ["=="] = true, ["!="] = true, ["<="] = true, [">="] = true }
local ONE = { ["<"] = true, [">"] = true, ["("] = true, [")"] = true, ["."] = true }
local WORDS = { ["and"] = true, ["or"] = true, ["not"] = true }
local CONSTANTS = { ["true"] = { true }, ["false"] = { false }, ["null"] = {} }
local INSTEAD = { ["="] = "==", ["!"] = "!= or not", ["&"] = "and", ["|"] = "or", ["~"] = "!=" }

local function fail(at, message, ...)
  error({ where = ("at character %d: "):format(at) .. message:format(...) }, 0)
end

--- One token from `at` on, which is no blank: kind, value and the place behind it.
local function read_token(text, at)
  local two, one = text:sub(at, at + 1), text:sub(at, at)
  if TWO[two] then return two, nil, at + 2 end
  local number = text:match("^%-?%d+%.?%d*[eE][-+]?%d+", at) or text:match("^%-?%d+%.?%d*", at)
    or text:match("^%-?%.%d+", at)
  if number then
    local stop = at + #number
    if text:find("^[%w_]", stop) then fail(at, "'%s' is not a number", text:match("^[%w_.+-]+", at)) end
    return "literal", tonumber(number), stop
  end
  if ONE[one] then return one, nil, at + 1 end
  if one == "'" or one == '"' or one == "`" then
    local stop = text:find(one, at + 1, true)
    if not stop then fail(at, "the text that starts here has no closing %s", one) end
    return one == "`" and "column" or "literal", text:sub(at + 1, stop - 1), stop + 1
  end
  local word = text:match("^[%a_\x80-\xff][%w_\x80-\xff]*", at)
  if not word then
    fail(at, "'%s' is not allowed here%s", text:match("^" .. utf8.charpattern, at) or "?",
      INSTEAD[one] and "; use " .. INSTEAD[one] or "")
  end
  local stop = at + #word
  if WORDS[word] then return word, nil, stop end
  if CONSTANTS[word] then return "literal", CONSTANTS[word][1], stop end
  return "column", word, stop
end

local function read_tokens(text)
  local tokens, at = {}, text:find("%S") or #text + 1
  while at <= #text do
    local kind, value, stop = read_token(text, at)
    tokens[#tokens + 1] = { kind = kind, value = value, at = at, text = text:sub(at, stop - 1) }
    at = text:find("%S", stop) or #text + 1
  end
  tokens[#tokens + 1] = { kind = "end", at = #text + 1, text = "the end" }
  return tokens
end

--- A column's value in a record: first of the row as it was read, in any case, then of the record.
local function column_value(record, name)
  local row = record.row or {}
  if row[name] ~= nil then return row[name], true end
  local lower = name:lower()
  local best
  for key in pairs(row) do
    if type(key) == "string" and key:lower() == lower and (not best or key < best) then best = key end
  end
  if best then return row[best], true end
  local metadata = type(record.metadata) == "table" and record.metadata or {}
  if metadata[name] ~= nil then return metadata[name], true end
  local own = lower ~= "row" and lower ~= "metadata" and record[lower]
  if own ~= nil and own ~= false and type(own) ~= "function" then return own, true end
  return nil, false
end

local function plain(value)
  if type(value) == "userdata" then return nil end -- JSON's null
  return value
end

--- Both as numbers or both as texts; nil where they cannot be compared.
local function alike(a, b)
  if type(a) == type(b) then return a, b end
  if type(a) == "number" and type(b) == "string" then return a, tonumber(b) end
  if type(a) == "string" and type(b) == "number" then return tonumber(a), b end
  return nil, nil
end

local function equal(a, b)
  if a == nil or b == nil then return a == b end
  local x, y = alike(a, b)
  return x ~= nil and y ~= nil and x == y
end

local ORDER = {
  ["<"]  = function(a, b) return a < b end,
  ["<="] = function(a, b) return a <= b end,
  [">"]  = function(a, b) return a > b end,
  [">="] = function(a, b) return a >= b end,
}

local function shown(value)
  if type(value) == "table" then return "a list or an object" end
  return ("'%s'"):format(tostring(value):sub(1, 40))
end

local function compare(operator, left, right, record)
  local a, b = plain(left.value(record)), plain(right.value(record))
  if operator == "==" then return equal(a, b) end
  if operator == "!=" then return not equal(a, b) end
  if a == nil or b == nil then return false end
  local x, y = alike(a, b)
  if (type(x) ~= "number" and type(x) ~= "string") or y == nil then
    local side = left.column and left or right
    fail(side.at, "the column '%s' is %s in the record %s, which '%s' cannot put in order with %s",
      side.column or side.text, shown(side == left and a or b), shown(record.id or "?"), operator,
      shown(side == left and b or a))
  end
  return ORDER[operator](x, y)
end

local Parser = {}
Parser.__index = Parser

function Parser:peek() return self.tokens[self.next] end

function Parser:take(kind)
  local token = self:peek()
  if kind and token.kind ~= kind then return nil end
  self.next = self.next + 1
  return token
end

function Parser:enter(token)
  self.depth = self.depth + 1
  if self.depth > DEPTH_MAX then fail(token.at, "nested more than %d deep", DEPTH_MAX) end
end

--- `a`, `a.b`: where it stands and how a record's value is found.
function Parser:column(token)
  local path, name = { token.value }, token.value
  while self:take "." do
    local member = self:take "column"
    if not member then fail(self:peek().at, "expected a name after '.'") end
    path[#path + 1], name = member.value, name .. "." .. member.value
  end
  self.columns[#self.columns + 1] = { name = token.value, at = token.at }
  return { at = token.at, column = name, value = function(record)
    local value = column_value(record, path[1])
    for i = 2, #path do
      if type(value) ~= "table" then return nil end
      value = value[path[i]]
    end
    return value
  end }
end

function Parser:operand()
  local token = self:take()
  if token.kind == "literal" then
    return { at = token.at, text = token.text, value = function() return token.value end }
  end
  if token.kind == "column" then return self:column(token) end
  return fail(token.at, "expected a column or a value, found %s",
    token.kind == "end" and token.text or "'" .. token.text .. "'")
end

--- A comparison, or one column that is true or false.
function Parser:comparison()
  local open = self:take "("
  if open then
    self:enter(open)
    local inner = self:any()
    if not self:take ")" then fail(self:peek().at, "expected ')'") end
    self.depth = self.depth - 1
    return inner
  end
  local left = self:operand()
  local operator = self:peek().kind
  if operator == "==" or operator == "!=" or ORDER[operator] then
    self:take()
    local right = self:operand()
    return function(record) return compare(operator, left, right, record) end
  end
  return function(record)
    local value = plain(left.value(record))
    if value ~= nil and type(value) ~= "boolean" then
      fail(left.at, "'%s' is %s in the record %s: compare it with == or another operator",
        left.column or left.text, shown(value), shown(record.id or "?"))
    end
    return value == true
  end
end

function Parser:negation()
  local token = self:take "not"
  if not token then return self:comparison() end
  self:enter(token)
  local inner = self:negation()
  self.depth = self.depth - 1
  return function(record) return not inner(record) end
end

function Parser:all()
  local left = self:negation()
  while self:take "and" do
    local a, b = left, self:negation()
    left = function(record) return a(record) and b(record) end
  end
  return left
end

function Parser:any()
  local left = self:all()
  while self:take "or" do
    local a, b = left, self:all()
    left = function(record) return a(record) or b(record) end
  end
  return left
end

local function parse(text)
  local parser = setmetatable({ tokens = read_tokens(text), next = 1, depth = 0, columns = {} }, Parser)
  if parser:peek().kind == "end" then fail(1, "the expression is empty") end
  local decide = parser:any()
  local rest = parser:peek()
  if rest.kind ~= "end" then
    fail(rest.at, "expected 'and', 'or' or the end, found '%s'", rest.text)
  end
  return { decide = decide, columns = parser.columns }
end

--- Runs f; an error of this module becomes nil and its text.
local function guarded(f, ...)
  local ok, result = pcall(f, ...)
  if ok then return result end
  if type(result) == "table" and result.where then return nil, result.where end
  error(result, 0)
end

--- A table { decide(record), columns } of the expression; or nil and what is wrong with it.
---@param text string
---@return table? expression, string? message
function where.compile(text)
  return guarded(parse, text)
end

--- True or false for a record; or nil and why the expression cannot be asked about it.
---@return boolean? chosen, string? message
function where.holds(expression, record)
  return guarded(expression.decide, record)
end

--- True when the record has the column, whatever its value.
function where.has_column(record, name)
  local _, found = column_value(record, name)
  return found
end

return where
