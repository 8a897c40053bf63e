--- ipw.parts: pictures and files inside messages; scripts use llm.user, llm.image and llm.file.
local core = require "ipw.core.fs"

local parts = {}

local function fail(why) error({ code = "invalid", message = why, retryable = false }, 0) end

local function data_uri(name, path, pictures)
  if type(path) ~= "string" then fail(name .. ": expected a path, got " .. type(path)) end
  local uri, why = core.data_uri(path, pictures)
  if not uri then fail(name .. ": " .. why) end
  return uri
end

--- A list of texts and parts, with the texts made parts.
function parts.list(list)
  local out = {}
  for i, part in ipairs(list) do
    if type(part) == "string" then
      part = { type = "text", text = part }
    elseif type(part) ~= "table" or type(part.type) ~= "string" then
      fail("llm.user: part " .. i .. ": expected a text, llm.image(...) or llm.file(...)")
    end
    out[i] = part
  end
  if #out == 0 then fail("llm.user: expected a text or a list of parts") end
  return out
end

function parts.image(path, detail)
  return {
    type = "image_url",
    image_url = { url = data_uri("llm.image", path, true), detail = detail },
  }
end

function parts.file(path)
  return {
    type = "file",
    file = { filename = path:match("[^/]*$"), file_data = data_uri("llm.file", path, false) },
  }
end

return parts
