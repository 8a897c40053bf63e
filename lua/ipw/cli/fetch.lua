--- ipw.cli.fetch: `ipw-agent fetch NAME|hf:...`: a dataset into the hub's own cache.
--
-- The cache looks afterwards as the hub's own client leaves it: blobs/ has each file's bytes by their hash,
-- snapshots/COMMIT/ has links to them by their paths, refs/REVISION names the commit.  refs/ is written
-- last, so that a dataset is there as a whole or not at all.  A file that was cut is gone on with where it
-- ends (blobs/HASH.incomplete), and is taken only with the length and the hash that the hub has for it.

local core    = require "ipw.core.fetch"
local dataset = require "ipw.dataset"
local http    = require "ipw.core.http"
local hub     = require "ipw.hub"
local ipw     = require "ipw"
local json    = require "ipw.json"
local looks   = require "ipw.core.data"
local named   = require "ipw.named"
local script  = require "ipw.core.script"

local TRIES, REDIRECTS, WAIT_MAX, STALL_S = 4, 5, 300, 60
local LARGE, DRAW_S = 1000000, 0.2 -- bytes of a file whose progress is told; how often
local broken = { network = true, timeout = true } -- failures after which a request is tried again
local FILES_MAX, PAGES_MAX = 100000, 1000

local function fail(message, ...) error({ fetch = message:format(...) }, 0) end

--- A result, or the end of the command with its message.
local function must(value, why)
  if value == nil then error({ fetch = why }, 0) end
  return value
end

--- Files of the cache: io.call, whose error is the end of the command.
local function files_of(job, what, ...)
  local ok, failed = pcall(job.call, what, ...)
  if not ok then fail("%s", type(failed) == "table" and failed.message or tostring(failed)) end
end

--- The folders above a file of the cache; of a gated dataset they are the user's alone.
local function make_folders(job, path)
  if job.gated then files_of(job, "folders", path, "private") else files_of(job, "folders", path) end
end

local function megabytes(n) return ("%.1f MB"):format(n / 1e6) end

--- What the hub's refusal means, and what helps.
local function refused(job, answer, what)
  local page, code = hub.page(job.repo), answer.headers["x-error-code"] or ""
  local status = answer.status
  local said = answer.headers["x-error-message"] and ": " .. answer.headers["x-error-message"] or ""
  if status == 403 and code:find "Gated" or status == 401 and code:find "Gated" then
    local token = core.has_token() and "with the account of your token"
      or "and give a token (HF_TOKEN, or the file that the hub's own client keeps)"
    fail("%s is gated: accept its terms at %s %s, then run the same line again", job.repo, page, token)
  end
  if status == 401 or status == 404 and code == "RepoNotFound" then
    fail("%s: the hub knows no such dataset, or it is private%s (HTTP status %d). Look at %s", job.repo,
      core.has_token() and " and not yours" or "; a private one needs a token (HF_TOKEN)", status, page)
  end
  if status == 403 then fail("%s: the hub refuses it (HTTP status 403%s). Look at %s", job.repo,
    said, page) end
  if code == "RevisionNotFound" then fail("%s has no revision '%s'. Look at %s", job.repo, job.revision, page) end
  if status == 404 then fail("%s: not there (HTTP status 404)", what) end
  fail("%s: HTTP status %d%s", what, status, said)
end

--- Seconds to wait before the next try; 429 and 503 may say so themselves.
local function pause(answer, try)
  local asked = answer and tonumber((answer.headers["retry-after"] or ""):match "^%d+$")
  return math.min(asked or 2 ^ (try - 1), WAIT_MAX)
end

local function worth_again(status)
  return status == 408 or status == 429 or status >= 500
end

--- One answer that is no redirect.  The token goes to the endpoint's origin; the request sees to that.
--- A hub on the net sends nobody to an address of this network; a private one may.
local function follow(job, url, opts)
  for _ = 1, REDIRECTS + 1 do
    local answer, why, word, away = http.request { url = url, endpoint = job.endpoint, public_only = not job.private,
      file = opts.file, file_max = opts.max, stall = STALL_S, seconds = 0, max_bytes = "64M" }
    if not answer then return nil, why, away and "away" or word end
    if answer.private and http.same_origin(url, job.endpoint) then job.private = true end
    if not (answer.status >= 300 and answer.status < 400 and answer.location) then return answer end
    url = answer.location
  end
  fail("%s: more than %d redirects", job.repo, REDIRECTS)
end

--- The same, while the part that is there of a large file is told.
local function follow_and_draw(job, url, opts)
  if not opts.progress then return follow(job, url, opts) end
  local answer, why, word
  ipw.map({ true, false }, function(download)
    if download then
      answer, why, word = follow(job, url, opts)
      word = answer and "done" or word
    end
    while not word do
      opts.progress(core.size(opts.file) or 0)
      ipw.sleep(DRAW_S)
    end
  end)
  return answer, why, word
end

--- An answer with status 200 or 206, after as many tries as are worth it.
local function get(job, url, opts, what)
  local try, had = 0, opts.file and core.size(opts.file) or 0
  while true do
    local answer, why, code = follow_and_draw(job, url, opts)
    if answer and (answer.status == 200 or answer.status == 206) then return answer end
    local has = opts.file and core.size(opts.file) or 0
    try, had = has > had and 1 or try + 1, has -- a server that cuts and goes on gets on
    if answer and not worth_again(answer.status) then refused(job, answer, what) end
    if not answer and not broken[code] then return nil, why, code end
    if try == TRIES then
      if answer then refused(job, answer, what) end
      return nil, why, code
    end
    local seconds = pause(answer, try)
    local wrong = answer and ("%s: HTTP status %d"):format(what, answer.status) or why
    job.warn(("%s; next try in %g s"):format(wrong, seconds))
    ipw.sleep(seconds)
  end
end

local function get_json(job, url)
  local answer, why = get(job, url, {}, url)
  local value, wrong = json.decode(must(answer, why).body)
  if type(value) ~= "table" then fail("%s: not the hub's answer: %s", url, wrong or "no object") end
  return value, answer
end

local function read_tree(job)
  local files, pages = {}, 0
  local url = ("%s/api/datasets/%s/tree/%s?recursive=true"):format(job.endpoint, job.repo, job.commit)
  while url do
    local page, answer = get_json(job, url)
    for _, entry in ipairs(page) do
      if entry.type == "file" then
        local lfs = type(entry.lfs) == "table" and entry.lfs or nil
        local name = lfs and lfs.oid or entry.oid
        if not (type(entry.path) == "string" and dataset.is_local_path(entry.path)) then
          fail("%s: the file name %s leaves the folder", job.repo, tostring(entry.path))
        end
        if type(name) ~= "string" or not name:find "^%x+$" or math.type(entry.size) ~= "integer" then
          fail("%s: %s: the hub gives no hash or no size", job.repo, entry.path)
        end
        files[#files + 1] = { path = entry.path, size = entry.size, blob = name, kind = lfs and "sha256" or "git" }
      end
    end
    url = answer.headers.link and answer.headers.link:match '<([^>]+)>;%s*rel="next"'
    pages = pages + 1
    if #files > FILES_MAX or url and pages == PAGES_MAX then
      fail("%s: its list of files has more than %s", job.repo,
        #files > FILES_MAX and FILES_MAX .. " files" or PAGES_MAX .. " pages")
    end
  end
  table.sort(files, function(a, b) return a.path < b.path end)
  return files
end

--- Those of the files that the dataset needs: of a named one its split, of hf:... what it says, else all.
local function choose(job, files, readme)
  local paths, wanted = {}, {}
  for i, file in ipairs(files) do paths[i] = file.path end
  if job.files then
    paths = job.files(paths)
  elseif job.config or job.split then
    local why
    paths, why = hub.choose(paths, job.config, job.split, readme)
    if not paths then fail("%s: %s", job.repo, why) end
  end
  for _, path in ipairs(paths) do wanted[path] = true end
  wanted["README.md"] = true -- its licence and its configurations
  local chosen = {}
  for _, file in ipairs(files) do
    if wanted[file.path] and file.path ~= ".gitattributes" then chosen[#chosen + 1] = file end
  end
  if #paths == 0 then fail("%s: none of its %d files is one of this dataset", job.repo, #files) end
  return chosen
end

local function draw(job, file, length)
  local share = file.size > 0 and length * 100 // file.size or 100
  return job.draw(("%d/%d  %s  %s of %s  %d %%"):format(job.at, job.of, file.path:match("[^/]*$"):sub(1, 40),
    megabytes(length), megabytes(file.size), share))
end

--- The partial file of a disk that is full is of no use to anybody.
local function disk_failed(job, file, partial, why)
  local kept = core.size(partial) or 0
  files_of(job, "remove", partial)
  fail("%s (%s needs %s more; what came of it is removed)", why, file.path, megabytes(file.size - kept))
end

--- The bytes of one file, in blobs/; true when they had to be fetched.
local function fetch_blob(job, file)
  local blob = job.folder .. "/blobs/" .. file.blob
  if core.size(blob) == file.size then return false end
  local partial = blob .. ".incomplete"
  job.partial = partial
  if (core.size(partial) or 0) > file.size then files_of(job, "remove", partial) end
  local url = ("%s/datasets/%s/resolve/%s/%s"):format(job.endpoint, job.repo, job.commit,
    (file.path:gsub("[^%w/._~-]", function(c) return ("%%%02X"):format(c:byte()) end)))
  if core.size(partial) ~= file.size or file.size == 0 then
    local answer, why, code = get(job, url, { file = partial, max = file.size,
      progress = file.size > LARGE and function(length) draw(job, file, length) end or nil }, url)
    if not answer then
      if code == "io" then disk_failed(job, file, partial, why) end
      if broken[code] or code == "away" then
        fail("%s. What came (%s) is kept: the same line goes on from there", why, megabytes(core.size(partial) or 0))
      end
      if code ~= "exists" then files_of(job, "remove", partial) end
      fail("%s", why)
    end
  end
  if core.size(partial) ~= file.size then
    local length = core.size(partial) or 0
    files_of(job, "remove", partial)
    fail("%s: %d bytes came, the hub says %d; removed", url, length, file.size)
  end
  local hash = must(core.hash(partial, file.kind))
  if hash ~= file.blob then
    files_of(job, "remove", partial)
    fail("%s: its %s hash is %s, the hub says %s; removed", url, file.kind, hash, file.blob)
  end
  files_of(job, "move", partial, blob)
  return true
end

--- The text of README.md, whose configurations decide which files are fetched; or nil.
local function readme_of(job, files)
  if not (job.config or job.split) then return nil end
  for _, file in ipairs(files) do
    if file.path == "README.md" and file.size < 1000000 then
      job.at, job.of = 0, 1
      fetch_blob(job, file)
      return (looks.read_text(job.folder .. "/blobs/" .. file.blob))
    end
  end
end

local function make_link(job, file)
  local path = ("%s/snapshots/%s/%s"):format(job.folder, job.commit, file.path)
  local _, depth = file.path:gsub("/", "")
  make_folders(job, path)
  files_of(job, "link", ("../"):rep(depth + 2) .. "blobs/" .. file.blob, path)
end

local function write_ref(job)
  if hub.is_commit(job.revision) then return end
  local path = job.folder .. "/refs/" .. job.revision
  make_folders(job, path)
  files_of(job, "write", path, job.commit)
end

local function fetch(job)
  local about = get_json(job, ("%s/api/datasets/%s/revision/%s"):format(job.endpoint, job.repo, job.revision))
  job.commit = about.sha
  if type(job.commit) ~= "string" or not hub.is_commit(job.commit) then
    fail("%s: the hub names no commit of '%s'", job.repo, job.revision)
  end
  make_folders(job, job.folder .. "/blobs/x")
  local all = read_tree(job)
  local files, bytes, fetched = choose(job, all, readme_of(job, all)), 0, 0
  for i, file in ipairs(files) do
    job.at, job.of = i, #files
    if fetch_blob(job, file) then fetched = fetched + 1 end
    if not draw(job, file, file.size) then
      job.warn(("%d/%d  %s  %s"):format(i, #files, file.path, megabytes(file.size)))
    end
    make_link(job, file)
    bytes = bytes + file.size
  end
  job.draw ""
  write_ref(job)
  job.say(("%s: %d file%s, %s, %d fetched now\n%s/snapshots/%s"):format(job.name, #files, #files == 1 and "" or "s",
    megabytes(bytes), fetched, job.folder, job.commit))
  job.say("run it: ipw-agent run agents/react.lua --dataset " .. job.name)
  return 0
end

local function offline()
  local set = (looks.getenv "HF_HUB_OFFLINE" or ""):upper()
  return set == "1" or set == "TRUE" or set == "YES" or set == "ON"
end

--- What is to be fetched: of a name the dataset's script says it.
local function job_of(name)
  local source
  if name:find "^hf:" then
    source = must(named.of_hub(name))
  else
    source = script.load(must(script.find("datasets", name)))
  end
  if not source.repo then
    fail("%s is not on the hub%s", name,
      name == "gaia-sample" and ": it is built in" or "; name its folder with --data-dir")
  end
  local cache = hub.cache() or fail "HOME, HF_HOME or HF_HUB_CACHE says where the hub's cache is; none is set"
  return { name = name, repo = source.repo, revision = source.revision or "main", config = source.config,
    split = source.split, files = source.files, gated = source.gated,
    endpoint = (looks.getenv "HF_ENDPOINT" or hub.default_endpoint):gsub("/+$", ""),
    folder = hub.repo_folder(cache, source.repo) }
end

local function run(io, _, args)
  local name, job = args[1], nil
  local ok, result = pcall(function()
    job = job_of(name)
    if offline() then fail("%s is not fetched: HF_HUB_OFFLINE is set", name) end
    job.say, job.warn, job.draw, job.call = io.say, io.warn, io.draw, io.call
    return fetch(job)
  end)
  if ok then return result end
  io.draw ""
  if job and job.partial and core.size(job.partial) == 0 then io.call("remove", job.partial) end
  if type(result) ~= "table" or not result.fetch then error(result, 0) end
  io.fail(result.fetch)
end

return {
  usage = "fetch NAME|hf:OWNER/NAME[:CONFIG][@REVISION][/SPLIT]",
  about = [[
Download a dataset into the Hugging Face cache, where other programs find it
too. If the download breaks off, run the same command again.]],
  more = [[
  ipw-agent fetch gsm8k

Variables: HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE.
The token is sent to the endpoint only, never to a host that it redirects to.
Exit status: 0 done, 1 failed, 2 wrong usage.]],
  options   = { { "path", "block", "search here first for datasets" } },
  args      = { 1, 1 },
  cpu_s     = 24 * 3600, -- hashing a large file is work, not a hang
  memory    = "256M",    -- for a list of 100,000 files
  downloads = true,
  run       = run,
}
