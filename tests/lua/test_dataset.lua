-- ipw.dataset, ipw.score and ipw.gaia.  Cases raise when they fail.
local core    = require "ipw.core.data"
local dataset = require "ipw.dataset"
local gaia    = require "ipw.gaia"
local score   = require "ipw.score"

local function equal(got, want, what)
  if got ~= want then
    error(("%sexpected %s, got %s"):format(what and what .. ": " or "", tostring(want),
      tostring(got)), 2)
  end
end

local function has(text, part)
  if not (text and text:find(part, 1, true)) then
    error(("expected \"%s\" in \"%s\""):format(part, tostring(text)), 2)
  end
end

--- The fixtures stand in tests/data/dataset of the source tree; tests run there or just below.
local function fixture(name)
  for _, root in ipairs { "", "../", "../../" } do
    local path = root .. "tests/data/dataset/" .. name
    if core.exists(path) then return path end
  end
  error("tests/data/dataset/" .. name .. " not found: run from the source tree", 2)
end

local function columnar(name)
  return ((fixture "plain.csv"):gsub("dataset/plain.csv$", "columnar/" .. name))
end

local function records(name, text, opts)
  local rows, why = core.parse(name, text)
  if not rows then error(why, 2) end
  opts = opts or {}
  opts.folder = opts.folder or "."
  return dataset.tasks(rows, name, opts)
end

local cases = {
  { "core.parse gives rows with line numbers and the hash of the bytes", function()
    local text = '{"a":1}\n\n{"a":2.0}\r\n{"a":null}'
    local rows, sha = core.parse("x.jsonl", text)
    equal(#rows, 3)
    equal(rows[1].line, 1); equal(rows[2].line, 3); equal(rows[3].line, 4)
    equal(math.type(rows[1].row.a), "integer"); equal(math.type(rows[2].row.a), "float")
    equal(type(rows[3].row.a), "userdata")
    equal(sha, core.sha256(text))
  end },

  { "core.parse names file and line of a bad row", function()
    local rows, why = core.parse("x.jsonl", '{"a":1}\n[1]\n')
    equal(rows, nil); has(why, "x.jsonl:2")
    rows, why = core.parse("x.jsonl", '{"a":1}\n{"a":')
    equal(rows, nil); has(why, "x.jsonl:2"); has(why, "no newline")
    rows, why = core.parse("x.parquet", "PAR1")
    equal(rows, nil); has(why, "Parquet")
    rows, why = core.parse("x.xlsx", "")
    equal(rows, nil); has(why, ".jsonl")
  end },

  { "dataset.open reads a file in another encoding", function()
    local path = fixture "latin1.csv"
    local none, why = dataset.open(path).load {}
    equal(none, nil); has(why, "--encoding latin1")
    equal(dataset.open(path).load { encoding = "latin1" }[1].question, "2 + 2, señor?")
    equal(dataset.open(path, { encoding = "iso-8859-15" }).load {}[1].question, "2 + 2, señor?")
    none, why = core.rows(columnar "saved/train", nil, nil, "latin1")
    equal(none, nil); has(why, "--encoding is for files of text")
  end },

  { "core.open_rows gives the rows of core.rows one after another", function()
    local rows, sha = core.rows(fixture "plain.csv")
    local reader <close> = core.open_rows(fixture "plain.csv")
    equal(reader:count(), #rows); equal(reader:sha256(), sha)
    for i = 1, #rows do
      local row, line = reader:next()
      equal(line, rows[i].line)
      for key, value in pairs(rows[i].row) do equal(row[key], value) end
    end
    local row, why = reader:next()
    equal(row, nil); equal(why, nil)
    reader:close()
    equal(pcall(reader.next, reader), false)
    equal(pcall(core.open_rows, fixture "plain.csv", { 1 }), false)
    local none, gone = core.open_rows "no/such.jsonl"
    equal(none, nil); has(gone, "no/such.jsonl")
  end },

  { "core refuses other environment variables", function()
    equal(pcall(core.getenv, "PATH"), false)
    equal(pcall(core.getenv, "HF_TOKEN"), false)
    core.getenv "HOME"
  end },

  { "rows of several shapes find their own columns", function()
    local tasks = records("x.jsonl", '{"id":"a","question":"q1","answer":"1"}\n' ..
      '{"id":"b","question":"q2","answer":"2"}\n{"ID":"c","Problem":"q3","target":"3"}\n' ..
      '{"id":"d","question":"q4"}\n{"id":"e","question":null,"problem":"q5","answer":"5","x":1}\n' ..
      '{"id":"f","question":"q6","problem":"p","answer":null,"target":"6"}\n')
    local said = {}
    for i, task in ipairs(tasks) do
      said[i] = ("%s %s %s %s"):format(task.id, task.question, task.answer, task.metadata.x)
    end
    equal(table.concat(said, "\n"),
      "a q1 1 nil\nb q2 2 nil\nc q3 3 nil\nd q4 nil nil\ne q5 5 1\nf q6 6 nil")
  end },

  { "a limit reads no row behind it", function()
    local path = fixture "broken_third.jsonl"
    local tasks, info = dataset.open(path).load { first = 2 }
    equal(#tasks, 2); equal(tasks[2].question, "two"); equal(#info.sha256, 64)
    local none, why = dataset.open(path).load {}
    equal(none, nil); has(why, "broken_third.jsonl:4")
    none, why = dataset.open(path).load { first = 3 }
    equal(none, nil); has(why, "broken_third.jsonl:4")
    local every = { map = function() return {} end }
    none, why = dataset.open(path, every).load { first = 2 }
    equal(none, nil); has(why, "broken_third.jsonl:4")
  end },

  { "the default columns, whatever their case", function()
    local list = records("x.jsonl", [[
{"unique_id":7,"PROBLEM":"Two and two?","Expected_Answer":4,"Category":"sums","LEVEL":2,"extra":"e"}
{"Question":"Which?","Final answer":"that","level":"1"}
]])
    equal(#list, 2)
    equal(list[1].id, "7"); equal(list[1].question, "Two and two?")
    equal(list[1].problem, list[1].question); equal(list[1].answer, "4")
    equal(list[1].subject, "sums"); equal(list[1].level, "2"); equal(list[1].rule, "gaia")
    equal(list[1].metadata.extra, "e"); equal(list[1].metadata.PROBLEM, nil)
    equal(list[2].id, "q0001"); equal(list[2].subject, "1"); equal(list[2].line, 2)
  end },

  { "the first column present wins, and null is absent", function()
    local list = records("x.jsonl",
      '{"task_id":null,"id":"i","question":"q","prompt":"p","answer":null,"target":"t"}\n')
    equal(list[1].id, "i"); equal(list[1].question, "q"); equal(list[1].answer, "t")
  end },

  { "a missing question is an error that names file, line and columns", function()
    local list, why = records("x.jsonl", '{"question":"q"}\n{"query":"q","id":"1"}\n')
    equal(list, nil)
    has(why, "x.jsonl:2"); has(why, "saw id, query")
    list, why = records("x.jsonl", '{"question":"  "}\n')
    equal(list, nil); has(why, "x.jsonl:1: no question: the column 'question' has no text")
  end },

  { "a mapping may name each rule of ipw.score, with what the rule needs, and no other", function()
    for _, rule in ipairs(score.rules) do
      local list = records("x.jsonl", '{"question":"q","answer":"100"}\n',
        { map = function() return { rule = rule, tolerance = 0.1 } end })
      equal(list[1].rule, rule); equal(type(score[rule]), "function")
      if rule == "numeric" then equal(dataset.score("it is 105", list[1]), true) end
    end
    local list, why = records("x.jsonl", '{"question":"q"}\n', { map = function() return { rule = "exakt" } end })
    equal(list, nil); has(why, 'x.jsonl:1: unknown scoring rule "exakt": boxed, choice, code, contains, exact')
  end },

  { "duplicate ids are refused with both lines", function()
    local list, why = records("x.jsonl", '{"id":"a","question":"q"}\n\n{"id":"a","question":"r"}\n')
    equal(list, nil)
    has(why, "\"a\""); has(why, "line 1"); has(why, "line 3")
  end },

  { "an answer that is no text is an error; a withheld one is unscorable", function()
    local list, why = records("x.jsonl", '{"question":"q","answer":{"a":1}}\n')
    equal(list, nil); has(why, "x.jsonl:1")
    list = records("x.jsonl", '{"question":"q"}\n{"question":"r","answer":"?"}\n')
    for _, record in ipairs(list) do
      local verdict, details = dataset.score("x", record)
      equal(verdict, nil); equal(details.unscorable_reason, "no_ground_truth")
    end
  end },

  { "choices: letter, index and text of the option", function()
    local list = records("x.jsonl", [[
{"question":"q","choices":["w","x","y","z"],"answer":"B"}
{"question":"q","options":["w","x","y","z"],"answer":2}
{"question":"q","options":["w","x","y","z"],"answer":"z"}
]])
    equal(list[1].answer, "B"); equal(list[2].answer, "C"); equal(list[3].answer, "D")
    equal(list[1].rule, "choice")
    has(dataset.prompt(list[1]).user, "\nA. w\nB. x\nC. y\nD. z")
    local letter, source = dataset.extract("I think so.\nANSWER: B", list[1])
    equal(letter, "B"); equal(source, "choice")
    equal(dataset.score(letter, list[1]), true)
    equal(dataset.score("(b)", list[1]), true)
    equal(dataset.score("C", list[1]), false)
    equal(dataset.score(nil, list[1]), false)
    local none, why = records("x.jsonl", '{"question":"q","choices":["w","x"],"answer":"no"}\n')
    equal(none, nil); has(why, "not one of the 2 options")
  end },

  { "the letter of a text", function()
    local rows = {
      { "The answer is (C).", 4, "C" }, { "the answer is **B**", 4, "B" },
      { "First the answer is A, no: the answer is D.", 4, "D" },
      { "The answer is Apple", 4, nil }, { "Answer: B", 4, "B" }, { "ANSWER:C", 4, "C" },
      { "Both A and then B", 4, "B" }, { "H", 4, nil }, { "H", 10, "H" }, { "", 4, nil },
    }
    for _, row in ipairs(rows) do equal(score.letter(row[1], row[2]), row[3], row[1]) end
  end },

  { "a mapping replaces fields and leaves rows out", function()
    local text = '{"q":"one","a":"1"}\n{"q":"two","a":"2"}\n'
    local list, skipped = records("x.jsonl", text, { map = function(row, line)
      if line == 2 then return nil end
      return { question = row.q, answer = row.a, rule = "exact", id = "m" .. line }
    end })
    equal(#list, 1); equal(skipped, 1)
    equal(list[1].question, "one"); equal(list[1].rule, "exact"); equal(list[1].id, "m1")
    local none, why = records("x.jsonl", text, { map = function(row)
      return { question = row.q, rule = "guess" }
    end })
    equal(none, nil); has(why, "guess")
  end },

  { "CSV by file: BOM, CRLF, quotes, blank line, no last newline", function()
    local set = dataset.open(fixture "plain.csv")
    equal(set.name, "plain")
    local list, info = set.load()
    equal(#list, 2); equal(#info.sha256, 64); equal(info.sample, false)
    equal(list[1].id, "1"); equal(list[1].question, 'How many "legs" has a table?')
    equal(list[1].answer, "4"); equal(list[1].subject, "things"); equal(list[1].line, 2)
    equal(list[2].question, "Which is red,\nblue or green: grass?"); equal(list[2].line, 4)
    equal(set.score("4.0", list[1]), true)
    has(set.prompt(list[1]).system, "FINAL ANSWER: [YOUR FINAL ANSWER]")
  end },

  { "a file that is not there", function()
    local list, why = dataset.open("/nowhere/x.jsonl").load()
    equal(list, nil); has(why, "/nowhere/x.jsonl")
  end },

  { "attachments of a generic file: found, missing, outside", function()
    local folder = fixture "gaia_like" .. "/2023/validation"
    local list = records("x.jsonl", [[
{"question":"q","file_name":"hens.txt"}
{"question":"q","file_name":"none.txt"}
{"question":"q","file_name":"../x"}
{"question":"q","file_path":"/etc/passwd"}
{"question":"q","file_name":""}
]], { folder = folder })
    equal(list[1].files[1].name, "hens.txt"); equal(list[1].files[1].path, folder .. "/hens.txt")
    has(list[2].error, "none.txt"); has(list[3].error, "leaves"); has(list[4].error, "leaves")
    equal(list[5].error, nil); equal(#list[5].files, 0)
    has(dataset.prompt(list[1]).user, "hens.txt")
  end },

  { "extraction: a reply, a tool's answer, what stood after a marker", function()
    local boxed, choice = { rule = "boxed" }, { rule = "choice", choices = { "x", "y", "z" } }
    local rows = {
      { "so\nFINAL ANSWER: **3**", nil, nil, "3", "marker" },
      { "just 3", nil, nil, "just 3", "last_line" },
      { "one\ntwo", nil, "last_turn", "two", "last_line" },
      { "", nil, nil, nil, "none" },
      { nil, nil, nil, nil, "none" },
      { "[3]", nil, "tool", "[3]", "tool" },
      { "a\nb", nil, "tool", "a\nb", "tool" },
      { "I found it. FINAL ANSWER: 3", nil, "tool", "3", "tool" },
      { "**3**\nBecause.", nil, "marker", "3", "marker" },
      { "FINAL ANSWER: 3", nil, "marker", "3", "marker" },
      { [[so \boxed{\frac{1}{2}}.]], boxed, nil, [[\frac{1}{2}]], "boxed" },
      { "no box", boxed, nil, "no box", "last_line" },
      { "B) A thing", choice, "tool", "B", "tool" },
      { "The answer is (C).", choice, nil, "C", "choice" },
      { "no idea", choice, nil, nil, "none" },
    }
    for i, row in ipairs(rows) do
      local answer, source = dataset.extract(row[1], row[2], row[3])
      equal(answer, row[4], "row " .. i); equal(source, row[5], "row " .. i)
    end
  end },

  { "the other rules", function()
    equal(score.exact(" a ", { answer = "a" }), true)
    equal(score.exact("A", { answer = "a" }), false)
    equal(score.boxed([[\boxed{1} or \boxed{ 2 }]], { answer = "2" }), true)
    equal(score.boxed("2", { answer = "$2$" }), true)
    equal(score.judge("x", { answer = "x" }), nil)
    equal(score.gaia(nil, { answer = "None" }), true)
    equal(score.gaia("17\0junk", { answer = "17" }), false)
    local _, details = score.gaia("a", { answer = "a, b" })
    equal(details.route, "list")
  end },

  { "numbers and words as Python writes them", function()
    local rows = { { 17, "17" }, { 17.0, "17.0" }, { 0.1, "0.1" }, { -2.5, "-2.5" },
      { true, "True" }, { false, "False" }, { 1 / 3, "0.3333333333333333" },
      { math.huge, "inf" }, { "x", "x" } }
    for _, row in ipairs(rows) do equal(score.text(row[1]), row[2]) end
    equal(score.text({}), nil); equal(score.text(nil), nil)
  end },

  { "gaia: the bundled sample, its own answers right", function()
    local list, info = gaia.load { sample = true }
    equal(info.sample, true); equal(info.note, nil); equal(#info.sha256, 64)
    equal(info.source, "builtin:datasets/gaia-sample/metadata.jsonl")
    assert(#list >= 14)
    local attached, levels = 0, {}
    for _, record in ipairs(list) do
      equal(record.error, nil, record.id)
      equal(score.gaia(record.answer, record), true, record.id)
      equal(score.gaia("no such answer", record), false, record.id)
      levels[record.level] = true
      for _, file in ipairs(record.files) do
        attached = attached + 1
        equal(core.builtin(file.builtin), true, file.builtin)
        has(dataset.prompt(record).user, file.name)
      end
    end
    assert(attached >= 8 and levels["1"] and levels["2"] and levels["3"])
    equal(list[1].metadata.number_of_steps, "2")
  end },

  { "gaia: a folder in the hub's layout", function()
    local list, info = gaia.load { data_dir = fixture "gaia_like" }
    equal(info.sample, false); equal(info.skipped, 1); has(info.note, "1 rows")
    local by_id = {}
    for _, record in ipairs(list) do by_id[record.id] = record end
    equal(#list, 5)
    equal(by_id["t-named"].level, "1"); equal(by_id["t-named"].subject, "level_1")
    equal(by_id["t-named"].files[1].name, "hens.txt")
    equal(by_id["t-named"].metadata.number_of_steps, "1")
    equal(by_id["t-stem"].files[1].name, "renamed.csv")
    has(by_id["t-stem"].files[1].path, "t-stem.csv")
    has(by_id["t-missing"].error, "geese.txt"); has(by_id["t-outside"].error, "leaves")
    equal(by_id["t-withheld"].answer, nil)
    equal(score.gaia("x", by_id["t-withheld"]), nil)
  end },

  { "gaia: Parquet, as the hub has it, with an attachment beside it", function()
    local list, info = gaia.load { data_dir = columnar "gaia" }
    equal(#list, 3); equal(info.skipped, 0); equal(info.sample, false)
    has(info.source, "gaia/2023/validation/metadata.parquet")
    equal(list[1].id, "11111111-aaaa-4aaa-8aaa-000000000001"); equal(list[1].answer, "12")
    equal(list[1].level, "1"); equal(list[2].level, "2"); equal(list[3].level, "3")
    equal(list[1].metadata.number_of_steps, "1"); equal(list[2].metadata.number_of_tools, "1")
    equal(list[3].metadata.number_of_steps, nil)
    equal(#list[1].files, 0)
    equal(list[2].files[1].name, "11111111-aaaa-4aaa-8aaa-000000000002.txt")
    equal(score.gaia("3, 2", list[3]), false); equal(score.gaia("2,3", list[3]), true)
    equal(#gaia.load { data_dir = columnar "gaia/2023/validation/metadata.parquet" }, 3)
  end },

  { "a folder that save_to_disk left is a dataset; it needs the columns that it names", function()
    local function map(row)
      local name = type(row.name) == "string" and row.name or "?" -- null is a userdata
      return { question = name, answer = row.kind, id = "n" .. row.id }
    end
    local set = dataset.open(columnar "saved/train/", { map = map, columns = { "id", "kind", "name" } })
    equal(set.name, "train")
    local list, info = set.load {}
    equal(#list, 24); equal(list[1].answer, "red"); equal(list[24].id, "n23"); equal(#info.sha256, 64)
    has(list[12].question, "naïve “11”")
    local rows = core.rows(columnar "saved/train", { "ID", "none" })
    equal(rows[24].row.id, 23); equal(rows[24].line, 24); equal(next(rows[24].row, "id"), nil)
    local reader <close> = core.open_rows(columnar "duckdb-groups.parquet", { "seven" })
    equal(reader:count(), 4100); equal(#reader:sha256(), 64)
    for i = 1, 4100 do
      local row, line = reader:next()
      equal(line, i); equal(row.seven, tostring((i - 1) % 7)); equal(row.id, nil)
    end
    equal(reader:next(), nil)
  end },

  { "pictures of a row are files that go with its question", function()
    local png = { bytes = { base64 = "iVBORw0KGgoAAA==" }, path = "a.png" }
    local rows = { { line = 1, row = { question = "Q", answer = "A", ["the image"] = png, note = "n",
      more = { png, { bytes = { base64 = "/9j/AAAA" }, path = "b" } }, url = "data:image/gif;base64,R0lGOD" } } }
    local task = assert(dataset.tasks(rows, "x", { folder = "." }))[1]
    local names = {}
    for i, file in ipairs(task.files) do
      names[i] = file.name
      equal(task.metadata.pictures[i], file.name)
    end
    equal(table.concat(names, " "), "more_1.png more_2.jpg the_image.png url.gif")
    equal(task.files[3].data, "data:image/png;base64,iVBORw0KGgoAAA==")
    equal(task.metadata.note, "n"); equal(task.metadata.more, nil); equal(task.metadata["the image"], nil)
    rows[1].row.more = { bytes = { base64 = "T2dnUwAC" }, path = "speech.ogg" }
    local none, why = dataset.tasks(rows, "x", { folder = "." })
    equal(none, nil); has(why, "x:1: the column 'more' holds a file (speech.ogg) that is no PNG")
  end },

  { "gaia: a folder named by the user is not replaced by the sample", function()
    local list, why = gaia.load { data_dir = fixture "parquet_only" }
    equal(list, nil)
    has(why, "GAIA was found but cannot be read"); has(why, "parquet_only/2023/validation/metadata.parquet: ")
    list, why = gaia.load { data_dir = "/nowhere" }
    equal(list, nil); has(why, "/nowhere")
    list, why = gaia.load { data_dir = fixture "gaia_like", split = "test" }
    equal(list, nil); has(why, "2023/test")
  end },

  { "gaia: the file itself may be named", function()
    local list = gaia.load { data_dir = fixture "gaia_like" .. "/2023/validation/metadata.jsonl" }
    equal(#list, 5)
  end },

  { "docs/datasets.md names every column that is known", function()
    local page = require("ipw.core.script").source((fixture "plain.csv"):gsub("tests/data/dataset/plain.csv", "")
      .. "docs/datasets.md")
    for field, names in pairs(dataset.columns) do
      for _, name in ipairs(names) do has(page, "`" .. name .. "`") end
      equal(type(field), "string")
    end
  end },
}

return cases
