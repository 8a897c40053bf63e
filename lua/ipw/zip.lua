--- ipw.zip: reads zip files.
--
-- Pure: bytes in, bytes out, nothing is written.  Only what is asked for is unpacked, up to a limit, so
-- that a small file that stands for a huge one costs no more than a large one.  Names are only labels.

local inflate = require("ipw.core.text").inflate

local MAX_ENTRIES = 10000

local Zip = {}
Zip.__index = Zip

--- The end record: at the end of the file, before a comment of at most 65535 bytes.
local function end_record(bytes)
  for at = #bytes - 21, math.max(1, #bytes - 65557), -1 do
    if bytes:byte(at) == 0x50 and bytes:sub(at, at + 3) == "PK\5\6" then
      local comment = string.unpack("<I2", bytes, at + 20)
      if at + 21 + comment <= #bytes then return at end
    end
  end
end

--- The entry of the directory at `at`, and where the next one begins; nil if there is none.
local function entry_at(bytes, at)
  if at < 1 or #bytes < at + 45 or bytes:sub(at, at + 3) ~= "PK\1\2" then return end
  local flags, method, _, _, crc, packed, size, name_n, extra_n, comment_n, _, _, _, offset =
    string.unpack("<I2I2I2I2I4I4I4I2I2I2I2I2I4I4", bytes, at + 8)
  local next_at = at + 46 + name_n + extra_n + comment_n
  if next_at - 1 > #bytes then return end
  return { name = bytes:sub(at + 46, at + 45 + name_n), method = method, crc = crc, packed = packed, size = size,
           offset = offset, locked = flags & 1 == 1 }, next_at
end

--- Reads the directory of a zip file: a table with `entries` ({ name, size, ... } in order); or nil and
--- a reason.
local function open(bytes)
  local at = #bytes >= 22 and end_record(bytes)
  if not at then return nil, "is no zip file, or is cut" end
  local total, _, from = string.unpack("<I2I4I4", bytes, at + 10)
  if total == 0xFFFF or from == 0xFFFFFFFF then return nil, "is a zip file of the large format (zip64)" end
  if total > MAX_ENTRIES then return nil, ("has more than %d entries"):format(MAX_ENTRIES) end
  local zip = setmetatable({ bytes = bytes, entries = {}, by_name = {} }, Zip)
  at = from + 1
  for i = 1, total do
    local entry
    entry, at = entry_at(bytes, at)
    if not entry then return nil, "is damaged: its directory is cut" end
    zip.entries[i] = entry
    zip.by_name[entry.name] = entry
  end
  return zip
end

--- The bytes of an entry, `most` at most; or nil and a reason.
function Zip:read(name, most)
  local entry = self.by_name[name]
  if not entry then return nil, ("has no '%s'"):format(name) end
  if entry.locked then return nil, ("'%s' needs a password"):format(name) end
  local at = entry.offset + 1
  if #self.bytes < at + 29 or self.bytes:sub(at, at + 3) ~= "PK\3\4" then
    return nil, ("'%s' is not where the directory says"):format(name)
  end
  local name_n, extra_n = string.unpack("<I2I2", self.bytes, at + 26)
  local from = at + 30 + name_n + extra_n
  local packed = self.bytes:sub(from, from + entry.packed - 1)
  if #packed < entry.packed then return nil, ("'%s' is cut"):format(name) end
  if entry.size > most then
    return nil, ("'%s' has %d bytes unpacked; %d is the limit"):format(name, entry.size, most)
  end
  if entry.method ~= 0 and entry.method ~= 8 then
    return nil, ("'%s' is packed by method %d, which is not known here"):format(name, entry.method)
  end
  if entry.method == 0 then return packed end
  local out, why = inflate(packed, entry.size, entry.crc)
  if not out then return nil, ("'%s': %s"):format(name, why) end
  return out
end

return { open = open }
