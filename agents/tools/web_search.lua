--- web_search: asks a search engine, or searches a folder of texts.
--
-- The user names the engine (--search, or a variable of the environment); its address and key stay in
-- the program.  Each engine has its own form of request and answer; a hit is a title, an address and an
-- excerpt.

local core = require "ipw.core.http"
local json = require "ipw.json"
local http = require "ipw.http"

local SHOWN_BYTES = 500   -- of an excerpt

local function list_of(value) return type(value) == "table" and value or {} end

local function get(fields) return { method = "GET", url = "?" .. http.query(fields) } end

local function post(value)
  return { method = "POST", body = json.encode(value), headers = { ["Content-Type"] = "application/json" } }
end

--- The request of each engine; where the hits are in its answer; the names of a hit's fields.
local ENGINES = {
  searxng = {
    ask  = function(query) return get { q = query, format = "json" } end,
    hits = function(answer) return answer.results end,
    title = "title", url = "url", text = "content",
  },
  brave = {
    ask  = function(query, count) return get { q = query, count = count } end,
    hits = function(answer) return list_of(answer.web).results end,
    title = "title", url = "url", text = "description",
  },
  tavily = {
    ask  = function(query, count) return post { query = query, max_results = count, search_depth = "basic" } end,
    hits = function(answer) return answer.results end,
    title = "title", url = "url", text = "content",
  },
  serper = {
    ask  = function(query, count) return post { q = query, num = count } end,
    hits = function(answer) return answer.organic end,
    title = "title", url = "link", text = "snippet",
  },
}

--- On one line, without tags (Brave marks the words that it found).
local function plain(value)
  if type(value) ~= "string" then return "" end
  value = value:gsub("</?[%a][^<>]*>", ""):gsub("&amp;", "&"):gsub("&lt;", "<"):gsub("&gt;", ">")
    :gsub("&quot;", '"'):gsub("&#x?27;", "'"):gsub("&#39;", "'"):gsub("%s+", " ")
  return #value > SHOWN_BYTES and value:sub(1, utf8.offset(value, 0, SHOWN_BYTES) - 1) .. "\u{2026}" or value
end

local function failure(name, r)
  if name == "searxng" and r.status == 403 then
    return "searxng: HTTP 403: its settings must allow the format json (search.formats)", false
  end
  local said = r.status >= 300 and json.decode(r.body)
  local why = type(said) == "table" and (said.message or said.detail or said.error)
  return ("%s: HTTP %d%s"):format(name, r.status, type(why) == "string" and ": " .. why:sub(1, 200) or ""),
    r.status == 429 or r.status >= 500
end

--- { title, url, text } of each hit; or nil, a reason, and whether another try helps.
local function ask(name, query, count)
  local engine = ENGINES[name]
  local request = engine.ask(query, count)
  request.server, request.seconds, request.max_bytes = "search", 20, "4M"
  request.headers = request.headers or {}
  request.headers.Accept = "application/json"
  local r, why, word = core.request(request)
  if not r then return nil, why, word == "network" or word == "timeout" end
  if r.status ~= 200 then return nil, failure(name, r) end
  local answer = json.decode(r.body)
  if type(answer) ~= "table" then return nil, name .. ": the answer is not JSON" end
  local out = {}
  for _, hit in ipairs(list_of(engine.hits(answer))) do
    if type(hit) == "table" and type(hit[engine.url]) == "string" and #out < count then
      out[#out + 1] = { plain(hit[engine.title]), hit[engine.url], plain(hit[engine.text]) }
    end
  end
  return out
end

local function look_in(folder, query, count)
  local hits, why = require("ipw.sqlite").search(folder, query, { rows = count })
  if not hits then return nil, why end
  local out = {}
  for i, hit in ipairs(hits) do out[i] = { hit.path, folder .. "/" .. hit.path, plain(hit.snippet) } end
  return out
end

return {
  name    = "web_search",
  about   = "Searches the web. Returns titles, addresses and excerpts; visit_page shows a page.",
  input   = {
    { "query", "string", "Words to search for." },
    { "count", "integer", "How many results at most.", default = 8, min = 1, max = 20 },
  },
  effects = "asks the search engine of --search",
  needs   = { "search" },
  seconds = 60,
  retries = 2,

  run = function(args)
    if not args.query:find("%S") then return nil, "query: no words to search for" end
    local name, folder = core.search()
    local hits, why, again
    if folder then
      hits, why = look_in(folder, args.query, args.count)
    else
      hits, why, again = ask(name, args.query, args.count)
    end
    if not hits then return nil, why, again end
    if #hits == 0 then return ("No results (%s)."):format(name) end
    local lines = {}
    for i, hit in ipairs(hits) do
      lines[i] = ("%d. %s\n   %s%s"):format(i, hit[1] ~= "" and hit[1] or "(no title)", hit[2],
        hit[3] ~= "" and "\n   " .. hit[3] or "")
    end
    return table.concat(lines, "\n")
  end,
}
