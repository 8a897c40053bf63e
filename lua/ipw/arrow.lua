--- ipw.arrow: writes tables as an Arrow IPC stream, as Hugging Face's save_to_disk has them.
---
--- A schema is a list of fields { name, type }: type is "string", "int64", "float64", "bool", or a list of
--- fields (a struct). Every field may be null (nil in a row). Rows are tables by field name.
local json = require "ipw.json"

local arrow = {}

local pack, rep = string.pack, string.rep
local V5, SCHEMA, RECORD_BATCH = 4, 1, 3
local type_ids = { int64 = 2, float64 = 3, string = 5, bool = 6, struct = 13 }

-- Flatbuffers are made from their end: offsets count from there, and parts are put before those that are there.

local function new_builder() return { parts = {}, len = 0 } end

local function put(b, bytes)
  b.parts[#b.parts + 1] = bytes
  b.len = b.len + #bytes
end

--- Pads so that after `more` bytes the length is a multiple of `size`.
local function align(b, size, more)
  local pad = -(b.len + more) % size
  if pad > 0 then put(b, rep("\0", pad)) end
end

local function text(b, s)
  align(b, 4, #s + 1)
  put(b, s .. "\0")
  put(b, pack("<I4", #s))
  return b.len
end

local function offset_to(b, target) put(b, pack("<I4", b.len + 4 - target)) end

local function offsets(b, targets)
  align(b, 4, 4 * #targets)
  for i = #targets, 1, -1 do offset_to(b, targets[i]) end
  put(b, pack("<I4", #targets))
  return b.len
end

--- A vector of structs of two 64-bit integers.
local function pairs_of(b, list)
  align(b, 8, 16 * #list)
  for i = #list, 1, -1 do put(b, pack("<i8i8", list[i][1], list[i][2])) end
  put(b, pack("<I4", #list))
  return b.len
end

--- A table: slots[i] = { format, value } or { "offset", target }, false for a default; n slots.
local function object(b, slots, n)
  local at = {}
  for i = n, 1, -1 do
    local slot = slots[i]
    if slot then
      if slot[1] == "offset" then
        align(b, 4, 4)
        offset_to(b, slot[2])
      else
        local bytes = pack("<" .. slot[1], slot[2])
        align(b, #bytes, #bytes)
        put(b, bytes)
      end
      at[i] = b.len
    end
  end
  align(b, 4, 4)
  put(b, pack("<i4", 2 * (2 + n)))
  local start, low = b.len, b.len
  for i = 1, n do if at[i] then low = math.min(low, at[i]) end end
  local size, vtable = 4, {}
  for i = 1, n do
    vtable[i] = pack("<I2", at[i] and start - at[i] or 0)
    if at[i] and slots[i] then
      local width = slots[i][1] == "offset" and 4 or #pack("<" .. slots[i][1], 0)
      size = math.max(size, start - at[i] + width)
    end
  end
  put(b, pack("<I2I2", 2 * (2 + n), size) .. table.concat(vtable))
  return start
end

local function finish(b, root)
  align(b, 8, 4)
  offset_to(b, root)
  local out, n = {}, #b.parts
  for i = 1, n do out[i] = b.parts[n + 1 - i] end
  return table.concat(out)
end

local function message(kind, header, b, body_length)
  local root = object(b, { { "i2", V5 }, { "I1", kind }, { "offset", header }, { "i8", body_length } }, 4)
  local bytes = finish(b, root)
  return pack("<I4i4", 0xFFFFFFFF, #bytes) .. bytes
end

local function field(b, f)
  local kind = type(f[2]) == "table" and "struct" or f[2]
  local children = {}
  if kind == "struct" then
    for i, child in ipairs(f[2]) do children[i] = field(b, child) end
  end
  local list = offsets(b, children)
  local of = kind == "int64" and object(b, { { "i4", 64 }, { "I1", 1 } }, 2)
    or kind == "float64" and object(b, { { "i2", 2 } }, 1) or object(b, {}, 0)
  local name = text(b, f[1])
  return object(b, { { "offset", name }, { "I1", 1 }, { "I1", type_ids[kind] }, { "offset", of }, false,
                     { "offset", list } }, 6)
end

--- What Hugging Face's datasets call the fields.
---@param fields table[]
---@return table
function arrow.features(fields)
  local out = {}
  for _, f in ipairs(fields) do
    out[f[1]] = type(f[2]) == "table" and arrow.features(f[2]) or { dtype = f[2], _type = "Value" }
  end
  return out
end

--- The stream's beginning.
---@param fields table[]
---@return string
function arrow.schema(fields)
  local b, list = new_builder(), {}
  for i, f in ipairs(fields) do list[i] = field(b, f) end
  local vector = offsets(b, list)
  local value = text(b, json.encode { info = { features = arrow.features(fields) } })
  local metadata = offsets(b, { object(b, { { "offset", text(b, "huggingface") }, { "offset", value } }, 2) })
  return message(SCHEMA, object(b, { false, { "offset", vector }, { "offset", metadata } }, 3), b, 0)
end

local function bits(n, is_set)
  local bytes = {}
  for i = 0, (n - 1) // 8 do
    local byte = 0
    for k = 0, 7 do
      if 8 * i + k < n and is_set(8 * i + k + 1) then byte = byte | 1 << k end
    end
    bytes[i + 1] = string.char(byte)
  end
  return table.concat(bytes)
end

--- Appends a column's nodes and buffers; values[i] is nil where it is null.
local function column(out, kind, values, n)
  local nulls = 0
  for i = 1, n do if values[i] == nil then nulls = nulls + 1 end end
  out.nodes[#out.nodes + 1] = { n, nulls }
  out.buffers[#out.buffers + 1] = nulls > 0 and bits(n, function(i) return values[i] ~= nil end) or ""
  local data = {}
  if type(kind) == "table" then
    for _, f in ipairs(kind) do
      local inner = {}
      for i = 1, n do inner[i] = values[i] and values[i][f[1]] end
      column(out, f[2], inner, n)
    end
    return
  elseif kind == "bool" then
    out.buffers[#out.buffers + 1] = bits(n, function(i) return values[i] end)
    return
  elseif kind == "string" then
    local ends, at = { pack("<i4", 0) }, 0
    for i = 1, n do
      local s = values[i] or ""
      at = at + #s
      data[i], ends[i + 1] = s, pack("<i4", at)
    end
    out.buffers[#out.buffers + 1] = table.concat(ends)
  elseif kind == "int64" then
    for i = 1, n do data[i] = pack("<i8", values[i] or 0) end -- raises for a fraction
  else
    for i = 1, n do data[i] = pack("<d", values[i] or 0) end
  end
  out.buffers[#out.buffers + 1] = table.concat(data)
end

--- A batch of rows.
---@param fields table[]
---@param rows table[]
---@return string
function arrow.batch(fields, rows)
  local out, n = { nodes = {}, buffers = {} }, #rows
  for _, f in ipairs(fields) do
    local values = {}
    for i = 1, n do values[i] = rows[i][f[1]] end
    column(out, f[2], values, n)
  end
  local body, places, at = {}, {}, 0
  for i, bytes in ipairs(out.buffers) do
    local pad = -#bytes % 8
    places[i] = { at, #bytes }
    body[i] = pad > 0 and bytes .. rep("\0", pad) or bytes
    at = at + #bytes + pad
  end
  local b = new_builder()
  local buffers = pairs_of(b, places)
  local nodes = pairs_of(b, out.nodes)
  local header = object(b, { { "i8", n }, { "offset", nodes }, { "offset", buffers } }, 3)
  return message(RECORD_BATCH, header, b, at) .. table.concat(body)
end

--- The stream's end.
arrow.ending = pack("<I4I4", 0xFFFFFFFF, 0)

-- A dataset on disk: what save_to_disk writes.

local ROWS, BYTES = 1000, 16 * 1024 * 1024 -- of a batch

--- Begins one in a folder of the output ("" or "NAME/").
---@param out ipw.ExportOutput
---@param folder string
---@param fields table[]
---@return table set
function arrow.open(out, folder, fields)
  out:file(folder .. "data-00000-of-00001.arrow")
  out:write(arrow.schema(fields))
  return { out = out, folder = folder, fields = fields, rows = {}, bytes = 0 }
end

local function flush(set)
  if #set.rows == 0 then return end
  set.out:write(arrow.batch(set.fields, set.rows))
  set.rows, set.bytes = {}, 0
end

---@param set table
---@param row table
---@param bytes integer about as many
function arrow.add(set, row, bytes)
  set.rows[#set.rows + 1] = row
  set.bytes = set.bytes + bytes
  if #set.rows >= ROWS or set.bytes >= BYTES then flush(set) end
end

--- Ends it; fingerprint: 16 hex digits that name the content.
---@param set table
---@param fingerprint string
function arrow.close(set, fingerprint)
  local out = set.out
  flush(set)
  out:write(arrow.ending)
  out:file(set.folder .. "state.json")
  out:json { _data_files = { { filename = "data-00000-of-00001.arrow" } }, _fingerprint = fingerprint,
             _format_columns = json.null, _format_kwargs = {}, _format_type = json.null,
             _output_all_columns = false, _split = json.null }
  out:file(set.folder .. "dataset_info.json")
  out:json { citation = "", description = "", homepage = "", license = "", features = arrow.features(set.fields) }
end

return arrow
