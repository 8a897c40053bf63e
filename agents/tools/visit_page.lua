--- visit_page: the text of a web page, in parts.
--
-- Addresses are guarded and sizes limited by ipw.http (--web-allow, --no-web).  What is no text (PDF,
-- pictures, office files) goes to the workspace, where read_file reads it.

local fs   = require "ipw.fs"
local http = require "ipw.http"
local text = require "ipw.text"

local PART_BYTES, KEPT = 10000, 8

local ENDINGS = { ["application/pdf"] = "pdf", ["image/png"] = "png", ["image/jpeg"] = "jpg", ["image/gif"] = "gif",
  ["image/webp"] = "webp", ["application/zip"] = "zip", ["audio/mpeg"] = "mp3",
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"] = "xlsx",
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document"] = "docx",
  ["application/vnd.openxmlformats-officedocument.presentationml.presentation"] = "pptx" }

-- The bytes 0x80 to 0x9F of windows-1252, which pages in "latin-1" use as well.
local WINDOWS = { [0] = 0x20AC, nil, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039,
  0x152, nil, 0x17D, nil, nil, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161,
  0x203A, 0x153, nil, 0x17E, 0x178 }

--- The text in UTF-8: what is no UTF-8 is taken for windows-1252.
local function decoded(body)
  body = body:gsub("^\u{FEFF}", "")
  if utf8.len(body) then return body end
  return (body:gsub("[\x80-\xFF]", function(c)
    local byte = c:byte()
    return utf8.char(byte < 0xA0 and WINDOWS[byte - 0x80] or byte)
  end))
end

--- Keeps bytes in the workspace, under a name made from the address.
local function stored(response, kind)
  local ending = ENDINGS[kind] or response.url:gsub("[?#].*", ""):match("%.(%w%w?%w?%w?%w?)$") or "bin"
  local stem = response.url:gsub("[?#].*", ""):match("([^/]*)/*$"):gsub("%.%w+$", ""):gsub("[^%w_-]", "_")
  local name = ("web/%s.%s"):format(stem ~= "" and stem:sub(1, 60) or "page", ending:lower())
  for n = 2, 1000 do
    if not fs.size(name) then break end
    name = name:gsub("%-?%d*(%.%w+)$", ("-%d%%1"):format(n), 1)
  end
  local ok, why = fs.write(name, response.body)
  if not ok then return nil, why end
  return ("%s is %s, %d bytes; kept as %s: read_file shows it"):format(response.url, kind, #response.body, name)
end

--- A page as { title, parts }; or nil, a reason, and whether another try helps.
local function load(url, links)
  local r, why, word, failed = http.get(url, { max_bytes = "4M", seconds = 40,
    headers = { Accept = "text/html, text/plain;q=0.9, */*;q=0.5" } })
  if not r then
    local status = failed and failed.status or 0
    return nil, why, word == "network" or status == 429 or status >= 500
  end
  local kind = (r.type or "text/html"):lower():match("^%s*([^;%s]*)")
  local body, title = r.body, nil
  local is_html = kind == "text/html" or kind == "application/xhtml+xml" or kind == ""
  if not is_html and not kind:find("^text/") and not kind:find("json$") and not kind:find("xml$")
    and kind ~= "application/javascript" then
    return { url = r.url, note = assert(stored(r, kind)) }
  end
  if body:find("\0", 1, true) then return nil, url .. ": the page is not text" end
  body = decoded(body)
  if is_html then
    body, title = text.from_html(body, { links = links })
    if not body then return nil, ("%s: %s"):format(url, title) end
  end
  local parts = {}
  for i, piece in ipairs(text.chunks(body, { size = PART_BYTES, overlap = 0 })) do parts[i] = piece.text end
  return { url = r.url, title = title, parts = parts }
end

local pages, order = {}, {} -- of this query, so that the next part is not fetched again

return {
  name    = "visit_page",
  about   = "Fetches a web page and returns its text. Long pages come in parts.",
  input   = {
    { "url", "string", "The page's address, with http:// or https://." },
    { "part", "integer", "Which part.", default = 1, min = 1 },
    { "links", "boolean", "Keep links as [text](address).", default = false },
  },
  effects = "asks a web server; keeps what is no text in the workspace",
  needs   = { "http" },
  seconds = 60,
  retries = 1,

  run = function(args)
    if not args.url:find("^https?://[^%s/]") then return nil, "url: expected an address with http:// or https://" end
    local key = (args.links and "l " or "t ") .. args.url
    local page = pages[key]
    if not page then
      local why, again
      page, why, again = load(args.url, args.links)
      if not page then return nil, why, again end
      pages[key], order[#order + 1] = page, key
      if #order > KEPT then pages[table.remove(order, 1)] = nil end
    end
    if page.note then return page.note end
    if #page.parts == 0 then return ("%s has no text"):format(page.url) end
    if args.part > #page.parts then
      return nil, ("%s has %d parts; part=%d is past the end"):format(page.url, #page.parts, args.part)
    end
    local head = (page.title and page.title ~= "" and page.title .. "\n" or "") .. page.url
    local rest = args.part < #page.parts and
      ("\n[part %d of %d; continue with part=%d]"):format(args.part, #page.parts, args.part + 1) or ""
    return ("%s\n\n%s%s"):format(head, page.parts[args.part], rest)
  end,
}
