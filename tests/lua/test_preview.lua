-- Clipping, csv, tables and JSON as read_file shows them.
local preview = require "ipw.preview"
local json = require "ipw.json"

local function equal(got, want)
  if type(got) == "table" then got, want = json.encode(got), json.encode(want) end
  if got ~= want then error(("got %q, want %q"):format(got, want), 2) end
end

return {
  { "clip keeps head and tail, and characters whole", function()
    equal(preview.clip("short", 10), "short")
    local text = ("\u{20AC}"):rep(100)
    for limit = 8, 60 do
      local cut = preview.clip(text, limit)
      if not utf8.len(cut) or #cut > limit + 60 then error(cut) end
    end
    equal(preview.clip("abcdefghij", 8), "abcdef\n[... 2 bytes left out ...]\nij")
  end },
  { "lines", function()
    equal(preview.lines("a\nb"), { "a", "b" })
    equal(preview.lines("a\r\nb\r\n"), { "a", "b" })
    equal(preview.lines("a\n\nb\n"), { "a", "", "b" })
    equal(#preview.lines(""), 0)
  end },
  { "csv cells", function()
    equal(preview.csv("a,b\n1,2\n"), { { "a", "b" }, { "1", "2" } })
    equal(preview.csv("a,b\r\n1,\r\n,2"), { { "a", "b" }, { "1", "" }, { "", "2" } })
    equal(preview.csv('"x, y","say ""no"""\n"two\nlines",z'),
      { { "x, y", 'say "no"' }, { "two\nlines", "z" } })
    equal(preview.csv("a;b;c,d\n1;2;3"), { { "a", "b", "c,d" }, { "1", "2", "3" } })
    equal(preview.csv("a\tb\n1\t2\n\n"), { { "a", "b" }, { "1", "2" } })
    equal(preview.csv("\u{FEFF}a,b"), { { "a", "b" } })
    equal(preview.csv("a,b\n1,"), { { "a", "b" }, { "1", "" } })
    equal(preview.csv('a,b\n"open,1'), { { "a", "b" }, { "open,1" } })
    equal(#preview.csv(""), 0)
  end },
  { "tables", function()
    equal(preview.table_text { { "name", "n" }, { "a", "5" }, { "long one", "1250" }, { "", "" } },
      "name     |    n\na        |    5\nlong one | 1250\n         |")
    equal(preview.table_text { { "a" }, { ("\u{E9}"):rep(100) } },
      "a\n" .. ("\u{E9}"):rep(59) .. "\u{2026}")
  end },
  { "JSON keeps its order and numbers", function()
    equal(preview.json_text('{"b":1.50,"a":[1,2],"c":{"x":"a, {b}: \\"q\\" \\\\"}}'),
      '{\n  "b": 1.50,\n  "a": [1,2],\n  "c": {\n    "x": "a, {b}: \\"q\\" \\\\"\n  }\n}')
    equal(preview.json_text("[]"), "[]")
    equal(preview.json_text('"a"'), '"a"')
    equal(preview.json_text("-1.0e5"), "-1.0e5")
  end },
}
