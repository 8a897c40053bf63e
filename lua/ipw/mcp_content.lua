--- ipw.mcp_content: the result of an MCP tool as text for the model.
--
-- Pictures, sounds and other bytes become files of the query's workspace, named in the text.

local json = require "ipw.json"

local DATA_BYTES = 4 * 1024 * 1024 -- of base64 text
local ENDINGS = { ["image/png"] = "png", ["image/jpeg"] = "jpg", ["image/gif"] = "gif", ["image/webp"] = "webp",
  ["audio/wav"] = "wav", ["audio/mpeg"] = "mp3", ["application/pdf"] = "pdf", ["application/gzip"] = "gz",
  ["text/plain"] = "txt", ["application/json"] = "json" }

--- A name that the workspace does not have yet.
local function free_name(tool, mime)
  local fs = require "ipw.core.fs"
  local stem = "mcp/" .. tool:gsub("[^%w_-]", "_"):sub(1, 60)
  local ending = ENDINGS[mime] or "bin"
  for n = 1, 1000 do
    local name = ("%s-%d.%s"):format(stem, n, ending)
    if not fs.size(name) then return name end
  end
end

--- Bytes in base64: "[image/png, 123 bytes: mcp/tool-1.png]".
local function stored(tool, data, mime)
  mime = type(mime) == "string" and mime or "unknown type"
  if type(data) ~= "string" then return ("[%s without data]"):format(mime) end
  if #data > DATA_BYTES then return ("[%s, %d bytes of base64: too large to keep]"):format(mime, #data) end
  local bytes = require("ipw.base64").decode(data)
  if not bytes then return ("[%s: not base64]"):format(mime) end
  local name = free_name(tool, mime)
  local ok, why = nil, "too many files"
  if name then ok, why = require("ipw.core.fs").write(name, bytes) end
  return ok and ("[%s, %d bytes: %s]"):format(mime, #bytes, name)
    or ("[%s, %d bytes: not kept: %s]"):format(mime, #bytes, why)
end

local function resource(tool, r)
  if type(r) ~= "table" then return "[a resource without content]" end
  if type(r.text) == "string" then return r.text end
  if r.blob ~= nil then return stored(tool, r.blob, r.mimeType) end
  return ("[resource %s]"):format(tostring(r.uri))
end

local function part_text(tool, part)
  if type(part) ~= "table" then return "" end
  if part.type == "text" then return type(part.text) == "string" and part.text or "" end
  if part.type == "image" or part.type == "audio" then return stored(tool, part.data, part.mimeType) end
  if part.type == "resource" then return resource(tool, part.resource) end
  if part.type == "resource_link" then
    return ("[link to %s: %s]"):format(tostring(part.name or "a resource"), tostring(part.uri))
  end
  return ("[content of type %s]"):format(tostring(part.type))
end

--- The text; or nil and a reason for what the server calls an error.
return function(result, tool)
  if result.resultType == "input_required" then
    return nil, "the server asks for more input, which no one can give here"
  end
  local parts = {}
  for _, part in ipairs(type(result.content) == "table" and result.content or {}) do
    parts[#parts + 1] = part_text(tool, part)
  end
  if #parts == 0 and result.structuredContent ~= nil then parts[1] = json.encode(result.structuredContent) end
  local text = table.concat(parts, "\n")
  if result.isError == true then return nil, text ~= "" and text or "the tool failed and gave no reason" end
  return text ~= "" and text or "(no content)"
end
