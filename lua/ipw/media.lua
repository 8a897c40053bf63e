--- ipw.media: pictures and sounds for the tool read_file.
--
-- What a file is, its first bytes say.  A picture goes to the model with the result, if the agent shows
-- pictures (ipw.turns) and the model reads them.  Sound goes to a server with OpenAI's
-- /v1/audio/transcriptions (--speech-url), which returns what is said.

local core = require "ipw.core.http"
local json = require "ipw.json"

local PICTURE_BYTES = 3000000       -- so that the record of the run can hold it as base64
local SOUND_BYTES = 25 * 1000 * 1000 -- what OpenAI's server takes

local media = {}

--- "picture" or "sound", and its media type; nil for other files.
function media.kind(bytes)
  local head = bytes:sub(1, 12)
  if head:sub(1, 8) == "\x89PNG\r\n\x1a\n" then return "picture", "image/png" end
  if head:sub(1, 3) == "\xFF\xD8\xFF" then return "picture", "image/jpeg" end
  if head:find("^GIF8[79]a") then return "picture", "image/gif" end
  if head:sub(1, 4) == "RIFF" and head:sub(9, 12) == "WEBP" then return "picture", "image/webp" end
  if head:sub(1, 4) == "RIFF" and head:sub(9, 12) == "WAVE" then return "sound", "audio/wav" end
  if head:sub(1, 4) == "fLaC" then return "sound", "audio/flac" end
  if head:sub(1, 4) == "OggS" then return "sound", "audio/ogg" end
  if head:sub(5, 8) == "ftyp" and head:sub(9, 11) == "M4A" then return "sound", "audio/mp4" end
  if head:sub(1, 3) == "ID3" or head:find("^\xFF[\xFB\xFA\xF3\xF2]") then return "sound", "audio/mpeg" end
end

--- The result of read_file: text, and the file as a picture. `ctx` nil: it is inside another file.
function media.picture(name, bytes, type_, ctx)
  local what = ("%s is a picture (%s, %d bytes)"):format(name, type_, #bytes)
  if not ctx then return nil, what .. " inside another file: unpack it first" end
  if ctx.blind then return nil, ("%s, and %s"):format(what, ctx.blind) end
  if not ctx.pictures then
    return nil, what .. ", and this agent shows none to the model: the tool sub_model can show it to one, " ..
      "or an agent that uses ipw.turns"
  end
  if #bytes > PICTURE_BYTES then
    return nil, ("%s; %d bytes is the limit: make it smaller first"):format(what, PICTURE_BYTES)
  end
  return { text = what .. "; it follows.", picture = name }
end

--- The body and the type of a form (RFC 7578) with fields and one file.
local function form(fields, name, type_, bytes)
  local mark = "ipw-agent-form"
  while bytes:find(mark, 1, true) do mark = mark .. "-x" end
  local parts = {}
  for _, field in ipairs(fields) do
    parts[#parts + 1] = ('--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n')
      :format(mark, field[1], field[2])
  end
  parts[#parts + 1] = ('--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nContent-Type: %s\r\n\r\n')
    :format(mark, (name:match("[^/]*$"):gsub('[%c"\\]', "_")), type_)
  parts[#parts + 1] = bytes
  parts[#parts + 1] = ("\r\n--%s--\r\n"):format(mark)
  return table.concat(parts), "multipart/form-data; boundary=" .. mark
end

--- What is said in a sound file; or nil, a reason, and whether another try helps.
function media.transcript(name, bytes, type_)
  local what = ("%s is sound (%s, %d bytes)"):format(name, type_, #bytes)
  local model = core.speech()
  if not model then
    return nil, what .. "; to have it written down, the run needs a server: --speech-url URL " ..
      "(OpenAI's /v1/audio/transcriptions)"
  end
  if #bytes > SOUND_BYTES then
    return nil, ("%s; %d bytes is the limit: cut it first"):format(what, SOUND_BYTES)
  end
  local body, kind = form({ { "model", model }, { "response_format", "json" } }, name, type_, bytes)
  local r, why, word = core.request { server = "speech", method = "POST", body = body, seconds = 240, max_bytes = "4M",
    headers = { ["Content-Type"] = kind, Accept = "application/json" } }
  if not r then return nil, ("%s; %s"):format(what, why), word == "network" end
  local answer = json.decode(r.body)
  if r.status ~= 200 then
    local said = type(answer) == "table" and answer.error
    if type(said) == "table" then said = said.message end
    return nil, ("%s; its server: HTTP %d%s"):format(what, r.status,
      type(said) == "string" and ": " .. said:sub(1, 200) or ""), r.status == 429 or r.status >= 500
  end
  if type(answer) ~= "table" or type(answer.text) ~= "string" then
    return nil, what .. "; the answer of its server has no text"
  end
  return answer.text
end

return media
