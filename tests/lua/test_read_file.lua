--- read_file: tables, office files and zip files made by other programs (tests/data/office/make.cjs); the
--- same files cut, damaged and lying about their size.
local fs = require "ipw.fs"
local script = require "ipw.core.script"
local test = require "ipw.test"
local xml = require "ipw.xml"
local zip = require "ipw.zip"
local equal, matches = test.equal, test.matches

local read = test.tool "read_file"

local function fixture(name)
  return assert(script.source("tests/data/office/" .. name), name)
end

--- What the tool shows of a fixture, put into the workspace.
local function shown(name, args)
  fs.write(name, fixture(name))
  args = args or {}
  args.path = name
  return read(args)
end

--- A zip file of members: name, text, ...  A text is not packed; { bytes, size, checksum } is packed already.
local function zipped(...)
  local files, list, at = {}, {}, 0
  for i = 1, select("#", ...), 2 do
    local name, text = select(i, ...)
    local method, size, checksum = 0, #text, 0
    if type(text) == "table" then method, size, checksum, text = 8, text[2], text[3], text[1] end
    local head = ("<I2I2I2I2I2I4I4I4I2I2"):pack(20, 0, method, 0, 0, checksum, #text, size, #name, 0)
    files[#files + 1] = "PK\3\4" .. head .. name .. text
    list[#list + 1] = "PK\1\2\0\0" .. head .. ("<I2I2I2I4I4"):pack(0, 0, 0, 0, at) .. name
    at = at + #files[#files]
  end
  local directory = table.concat(list)
  return table.concat(files) .. directory ..
    ("<c4I2I2I2I2I4I4I2"):pack("PK\5\6", 0, 0, #list, #list, #directory, at, 0)
end

--- A workbook of one sheet with these rows.
local function workbook(rows)
  return zipped("xl/workbook.xml", '<workbook><sheet name="S" r:id="a"/></workbook>',
    "xl/_rels/workbook.xml.rels", '<Relationship Id="a" Type="x/worksheet" Target="s.xml"/>', "xl/s.xml", rows)
end

local function refused(pattern, text, ok)
  equal(ok, false, text)
  matches(text, pattern)
end

return {
  { "a workbook: sheets, dates, formulas, empty rows, rich text", function()
    equal(shown "sales.xlsx", "sales.xlsx, sheet 'Sales' (part) of Sales, Second sheet: 4 rows, 5 columns\n" ..
      "Name             | Sold | When                | Ok    | Share\n" ..
      "\u{C4}pfel & <Birnen> |   12 | 2024-02-29          | TRUE  | 0.25\n" ..
      "Kirschen         |  3.5 | 1999-12-31 23:59:30 | FALSE | 3.4285714285714284\n" ..
      "                 |      |                     |       |\n" ..
      "rich text        |      |                     |       | last")
    equal(shown("sales.xlsx", { start = 2, lines = 1 }):match "Kirschen.*",
      "Kirschen |  3.5 | 1999-12-31 23:59:30 | FALSE | 3.4285714285714284\n[... 2 more rows; continue with start=3]")
    matches(shown("sales.xlsx", { part = "Second sheet" }), "2 rows, 3 columns\n |  |\n |  |\n |  | alone$")
    equal(shown("sales.xlsx", { part = "2" }), shown("sales.xlsx", { part = "Second sheet" }))
    refused("has no sheet 'Third'; it has: Sales, Second sheet", shown("sales.xlsx", { part = "Third" }))
    equal(shown "plain.xlsx", "plain.xlsx, sheet 'Data': 2 rows, 2 columns\n  a | b\n  1 | x\n2.5 | y & z")
  end },

  { "a document and slides", function()
    equal(shown "report.docx", "report.docx: 6 lines\n# Annual report\nPlain bold & <odd>\n- first point\n" ..
      "City | People\nBern | 134 thousand\nThe end.")
    equal(shown "talk.pptx", "talk.pptx: 8 lines\n## Slide 1\nWelcome & hello\nNotes: say it slowly\n" ..
      "## Slide 2\none\ntwo\nk | v\na | 1")
    equal(shown("report.docx", { start = 6 }), "report.docx: 6 lines\nThe end.")
  end },

  { "a zip file: what it holds, and one of it", function()
    equal(shown "mixed.zip", "mixed.zip: a zip file with 5 entries; name one as part\na/notes.txt  (8 bytes)\n" ..
      "t.csv  (8 bytes)\ninner/plain.xlsx  (16007 bytes)\n../up.txt  (6 bytes)\nn?l  (8 bytes)")
    equal(shown("mixed.zip", { part = "a/notes.txt" }), "a/notes.txt: 2 lines\none\ntwo")
    equal(shown("mixed.zip", { part = "t.csv" }), "t.csv: 1 rows, 2 columns\nk | v\na | 1")
    matches(shown("mixed.zip", { part = "inner/plain.xlsx" }), "sheet 'Data': 2 rows")
    equal(shown("mixed.zip", { part = "../up.txt" }), "../up.txt: 1 lines\nstored")
    refused("has no 'none'", shown("mixed.zip", { part = "none" }))
    equal(fs.size "up.txt", nil, "nothing is unpacked into the workspace")
  end },

  { "files of LibreOffice and openpyxl", function()
    local function sample(name, args) -- the bundled sample's, made by tests/data/sample/make.sh
      fs.write(name, assert(script.source("datasets/gaia-sample/" .. name)))
      args = args or {}
      args.path = name
      return read(args)
    end
    equal(sample("solar.xlsx", { part = "Yield", start = 2, lines = 1 }),
      "solar.xlsx, sheet 'Yield' (part) of Sites, Yield: 3 rows, 7 columns\n" ..
      "site |  Jan |  Feb |  Mar |  Apr |  May |  Jun\n" ..
      "Mill | 1166 | 1702 | 2871 | 3960 | 4718 | 4889\n[... 1 more rows; continue with start=3]")
    equal(sample("minutes.docx", { start = 1, lines = 5 }):match("\n(.*)\n%["), "# Minutes of the rowing club\n" ..
      "Held in the club room; 51 members were present.\n" ..
      "The treasurer reported a surplus of 1,240 euros. Three motions were put to the vote:\n" ..
      "Motion | For | Against | Abstained\nNew boathouse | 31 | 14 | 6")
    equal(sample("harvest.pptx", { start = 10, lines = 5 }):match("\n(.*)\n%["),
      "## Slide 3\nPears\nHarvest: 34 tonnes\nLost to frost in April: 12 tonnes\nNotes: Show the picture of the night.")
    matches(sample "rain.zip", "3 entries; name one as part\nharbour.csv  %(114 bytes%)\n")
    equal(shown "plan.xlsx", "plan.xlsx, sheet 'Plan' (part) of Plan, Notes: 3 rows, 4 columns\n" ..
      "task        | due                 | hours | done\nHull & keel | 2026-05-04          |  12.5 | TRUE\n" ..
      "Mast        | 2026-06-01 09:30:00 |     7 | FALSE\nsum         |                     |       |")
    matches(shown("plan.xlsx", { part = "Notes" }), "wait for <rope>")
  end },

  { "a small file that stands for a huge one is refused", function()
    refused("20971520 bytes unpacked; 16777216 is the limit", shown("bomb.zip", { part = "zeros" }))
    refused("more than 1000 bytes unpacked", shown("bomb-that-lies.zip", { part = "zeros" }))
    refused("has a document type, which is not read", shown "entities.docx")
  end },

  { "bombs inside office files: members that unpack to a huge text, and entities that grow", function()
    local z = zip.open(fixture "bomb.zip")
    local entry = z.by_name.zeros
    local from = entry.offset + 31 + #"zeros"
    local packed = z.bytes:sub(from, from + entry.packed - 1)
    local laughs = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "' .. ("&a;"):rep(1000)
      .. '">]><x>&b;</x>'
    local kinds = {
      ["x.xlsx"] = function(part) return zipped("xl/workbook.xml", '<workbook><sheet name="S" r:id="a"/></workbook>',
        "xl/_rels/workbook.xml.rels", '<Relationship Id="a" Type="x/worksheet" Target="s.xml"/>' ..
        '<Relationship Id="b" Type="x/sharedStrings" Target="t.xml"/>', "xl/s.xml", "<row/>", "xl/t.xml", part) end,
      ["x.docx"] = function(part) return zipped("word/document.xml", part) end,
      ["x.pptx"] = function(part) return zipped("ppt/presentation.xml", '<sldId r:id="a"/>', "ppt/s.xml", part,
        "ppt/_rels/presentation.xml.rels", '<Relationship Id="a" Type="x/slide" Target="s.xml"/>') end,
    }
    for name, make in pairs(kinds) do
      fs.write(name, make { packed, entry.size, entry.crc })
      refused(name .. ": '.*' has 20971520 bytes unpacked; 16777216 is the limit", read { path = name })
      fs.write(name, make { packed, 1000, entry.crc })
      refused("more than 1000 bytes unpacked", read { path = name })
      fs.write(name, make(laughs))
      refused("has a document type, which is not read", read { path = name })
    end
  end },

  { "a workbook of very many cells is read in part, and says so", function()
    local row = '<row>' .. ('<c><v>1</v></c>'):rep(300) .. '</row>'
    fs.write("many.xlsx", workbook(row:rep(502)))
    matches(read { path = "many.xlsx", start = 500 }, "%[%.%.%. rows beyond 501 are not read%]$")
  end },

  { "a cell far away costs no more than a near one; a cell need not be UTF-8", function()
    fs.write("far.xlsx", workbook '<row r="1"><c r="A1"><v>1</v></c></row><row r="99999"><c r="SR9"><v>2</v></c></row>')
    local text = read { path = "far.xlsx", start = 99998 }
    matches(text, "^far.xlsx, sheet 'S': 99998 rows, 512 columns\n1 | ")
    matches(text, "|  | 2$")
    fs.write("early.xlsx", workbook "<row><c><v>1</c> 2</v></row>") -- found by fuzz_office
    matches(read { path = "early.xlsx" }, "1 columns\n1$")
    fs.write("bytes.xlsx", workbook('<row><c t="str"><v>' .. ("\x80"):rep(70) .. "</v></c><c><v>7</v></c></row>"))
    matches(read { path = "bytes.xlsx" }, "\u{2026} | 7$")
  end },

  { "slides that name one large part again and again", function()
    fs.write("again.pptx", zipped("ppt/presentation.xml", ('<sldId r:id="a"/>'):rep(20),
      "ppt/_rels/presentation.xml.rels", '<Relationship Id="a" Type="x/slide" Target="s.xml"/>',
      "ppt/s.xml", "<sld>" .. ("x"):rep(4 * 1024 * 1024) .. "</sld>"))
    refused("again.pptx: has more than 67108864 bytes unpacked", read { path = "again.pptx" })
  end },

  { "a file cut at every kilobyte, and a file with a wrong byte, gives a reason or a text", function()
    local sample = "../../../datasets/gaia-sample/"
    for _, name in ipairs { "sales.xlsx", "plain.xlsx", "plan.xlsx", "report.docx", "mixed.zip", "talk.pptx",
      sample .. "solar.xlsx", sample .. "minutes.docx", sample .. "harvest.pptx", sample .. "rain.zip" } do
      local whole = fixture(name)
      for at = 0, #whole - 1, 1024 do
        fs.write("cut", whole:sub(1, at))
        local text = read { path = "cut" }
        assert(not text:find("the tool failed", 1, true), text)
      end
      local seed = 7
      for _ = 1, 60 do
        seed = seed * 6364136223846793005 + 1442695040888963407
        local at = (seed >> 33) % #whole + 1
        fs.write("cut", whole:sub(1, at - 1) .. string.char(seed >> 24 & 255) .. whole:sub(at + 1))
        for _, part in ipairs { false, "a/notes.txt" } do
          local text = read { path = "cut", part = part or nil }
          assert(not text:find("the tool failed", 1, true), text)
        end
      end
    end
  end },

  { "zip directories that lie", function()
    local whole = fixture "mixed.zip"
    local at = #whole - 21
    local function with(offset, bytes)
      return whole:sub(1, at + offset - 1) .. bytes .. whole:sub(at + offset + #bytes)
    end
    for _, case in ipairs {
      { with(10, "\xFF\xFF"), "large format" }, { with(10, "\x20\x4E"), "more than 10000 entries" },
      { with(10, "\x09\x00"), "its directory is cut" }, { with(16, "\xFF\xFF\xFF\x7F"), "its directory is cut" },
      { "PK\5\6", "no zip file" }, { ("PK\5\6"):rep(30), "no zip file" },
    } do
      local z, why = zip.open(case[1])
      assert(z == nil and why:find(case[2], 1, true), tostring(why))
    end
  end },

  { "XML: references, CDATA, comments, tags that close themselves", function()
    local said = {}
    local whole = '<?xml?><!-- x --><a:b k="1 &amp; 2"><c/>t&#65;&#x42;&lt;&none;<![CDATA[<raw>]]></a:b>'
    for kind, a, b in xml.walk(whole) do
      said[#said + 1] = kind .. " " .. a .. (b and " " .. tostring(xml.attribute(b, "k")) or "")
    end
    equal(table.concat(said, "\n"), "open b 1 & 2\nopen c nil\nclose c\ntext tAB<&none;\ntext <raw>\nclose b")
    equal(xml.attribute('<c xr="no" r="A1"/>', "r"), "A1")
    equal(xml.text "&#xD800;&#1114112;&#0;x", "x")
    for _, bad in ipairs { "<", "<a", "<a <", "<>", "< a>", "<!DOCTYPE a>", "<!", "<![CDATA[", "<!--", "<?",
      "&", "</" } do
      local n = 0
      for _ in xml.walk(bad) do n = n + 1 end
      assert(n <= 1, bad)
    end
  end },

  { "tsv and jsonl are tables", function()
    fs.write("t.tsv", "a\tb, c\n1\t2\n")
    equal(read { path = "t.tsv" }, "t.tsv: 1 rows, 2 columns\na | b, c\n1 |    2")
    fs.write("r.jsonl", '{"b":[1,2],"a":"x"}\n\n{"a":null,"c":1.5}\n')
    equal(read { path = "r.jsonl" }, "r.jsonl: 2 rows, 3 columns\na | b     |   c\nx | [1,2] |\n  |       | 1.5")
    fs.write("odd.jsonl", "[1,2]\nno json\n")
    equal(read { path = "odd.jsonl" }, "odd.jsonl: 2 lines\n[1,2]\nno json")
    refused("has no parts", read { path = "t.tsv", part = "x" })
    fs.write("plain.parquet", assert(script.source "tests/data/columnar/duckdb-plain.parquet"))
    matches(read { path = "plain.parquet", lines = 1 }, "^plain%.parquet: %d+ rows, %d+ columns\n")
    fs.write("not.parquet", "PAR1 and more")
    refused("^error: not.parquet", read { path = "not.parquet" })
  end },

  { "a PDF needs a program, and says so", function()
    fs.write("no.pdf", "%PDF-1.4 but not really")
    local text, ok = read { path = "no.pdf" }
    equal(ok, false)
    matches(text, "pdftotext")
  end },
}
