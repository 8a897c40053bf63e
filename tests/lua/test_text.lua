--- ipw.text, ipw.schema, ipw.score, ipw.json, llm.trim: what is pure.
local text, test = require "ipw.text", require "ipw.test"
local schema, score, json, llm = require "ipw.schema", require "ipw.score", require "ipw.json", require "ipw.llm"
local prompt, turns = require "ipw.prompt", require "ipw.turns"
local equal, raises = test.equal, test.raises

local PAGE = [[<!doctype html><html><head><title> A  page </title><style>p { color: red }</style></head><body>
<script>var x = "<p>no</p>";</script><h1>Head &amp; line</h1><p>One <b>bold</b> word,
and a <a href="/x?a=1&amp;b=2">link</a>.<br>Next line</p>
<ul><li>first<li>second <ol><li>a</li><li>b</li></ol></ul>
<table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre>  as
   it is</pre><blockquote><p>said</p></blockquote><p hidden>not seen</p><!-- nor this --></body></html>]]

return {
  { "a page as a person reads it", function()
    local plain, title = text.from_html(PAGE)
    equal(title, "A page")
    equal(plain, "# Head & line\n\nOne bold word, and a link.\nNext line\n\n- first\n- second\n\n1. a\n2. b\n\n" ..
      "k | v\n1 | 2\n\n  as\n   it is\n\n> said")
    test.matches(text.from_html(PAGE, { links = true }), "%[link%]%(/x%?a=1&b=2%)")
    equal(text.from_html "", "")
    equal((text.from_html "just words"), "just words")
    equal((text.from_html("<p>a" .. ("<p>b"):rep(3))), "a\n\nb\n\nb\n\nb")
  end },

  { "pages that are traps", function()
    local plain, why = text.from_html(("<div>"):rep(200000))
    equal(plain, nil)
    test.matches(why, "nested")
    -- Closed by other tags than their own: nothing that counts ends sees how deep these nest.
    for _, open in ipairs { "<div></span>", "<div a='</div>'>", "<b></i>" } do
      plain, why = text.from_html(open:rep(500000))
      equal(plain, nil)
      test.ok(why:find "nested" or why:find "too costly", why)
    end
    test.matches(text.from_html("<ol>" .. ("<li>"):rep(100000) .. "x"), "\n100000%. x$")
    plain, why = text.from_html((" "):rep(8 * 1024 * 1024 + 1))
    equal(plain, nil)
    test.matches(why, "larger than 8 MiB")
    test.ok(text.from_html "\255\254<p>\0x</p>")
    test.ok(text.from_html(("<li>x"):rep(20000)))
  end },

  { "chunks end where something ends, cover everything, and overlap", function()
    local long = ("A sentence of words. "):rep(50) .. "\n\n" .. ("Ünïcode "):rep(100)
    local pieces, at = text.chunks(long, { size = 200, overlap = 20 }), 1
    for _, piece in ipairs(pieces) do
      equal(piece.text, long:sub(piece.from, piece.to))
      test.ok(#piece.text <= 200 and piece.from <= at and piece.to >= at)
      test.ok(utf8.len(piece.text), "cut inside a character")
      at = piece.to + 1
    end
    equal(at, #long + 1)
    equal(text.chunks "", {})
    equal(#text.chunks(("x"):rep(5000)), 3)
    raises(function() text.chunks("x", { size = 1 }) end, "size")
    raises(function() text.chunks("x", { overlap = 1500 }) end, "overlap")
  end },

  { "find: nearly", function()
    local from, to, alike = text.find("The quick brown fox jumps.", "Quick braun fox")
    equal(("The quick brown fox jumps."):sub(from, to), "quick brown fox")
    test.near(alike, 1 - 2 / 15)
    equal({ text.find("abc", "b") }, { 2, 2, 1.0 })
    equal(text.find("nothing alike", "zzzzqqqq"), nil)
    raises(function() text.find("x", "") end, "1 to 1000")
    equal(text.nearest("calculatr", { "python", "calculator" }), "calculator")
    test.ok(#text.clip(("word "):rep(1000), 100) < 160)
  end },

  { "schema: declare and explain", function()
    local input = schema.declare { { "path", "string", "A path." }, { "lines", "integer", "N", default = 5, max = 9 } }
    equal(schema.explain(input, { path = "a" }), {})
    equal(schema.explain(input, { lines = 10, pth = "x" }), { "argument 'path' is missing (string: A path.)",
      "argument 'lines' must be at most 9", "unknown argument 'pth' (did you mean 'path'?)" })
    raises(function() schema.declare { { "a", "strin", "x" } } end, "did you mean 'string'")
    raises(function() schema.declare { a = "string" } end, "expected a list")
    raises(function() schema.declare { { "a", "string" }, { "a", "string" } } end, "declared twice")
  end },

  { "score: numbers and words", function()
    for _, case in ipairs {
      { "It costs 1,234.50 dollars", "1234.5", true }, { "-3", "-3", true }, { "about 5 or 6", "5", false },
      { "1.5e3", "1500", true }, { "none", "5", false }, { "12 %", "12", true },
      { "all 1,417,173,173 of them", "1417173173", true }, { "1,000,000,000,000.5", "1000000000000.5", true },
      { "3, 1,200", "1200", true }, { "10-20", "20", true }, { "2024-05-17", "17", true }, { "is -7", "-7", true },
      { "5 -3", "-3", true }, { "1e-3", "0.001", true } } do
      equal((score.numeric(case[1], { answer = case[2] })), case[3], case[1])
    end
    equal((score.numeric("99", { answer = "100", tolerance = 0.02 })), true)
    equal((score.numeric("5", { answer = "x" })), nil)
    equal((score.contains("The answer is: New   York!", { answer = "new york" })), true)
    equal((score.contains("Newark", { answer = "new" })), false)
    equal((score.contains(nil, { answer = "x" })), false)
  end },

  { "json: null, array and object apart", function()
    equal(json.encode { json.array {}, json.object {}, json.null, json.object(json.array {}) }, "[[],{},null,{}]")
    test.ok(json.is_null(json.decode "null"))
    equal(json.encode(json.decode '{"b":[],"a":{}}'), '{"a":{},"b":[]}')
    raises(function() json.object { 1 } end, "is a list")
  end },

  { "threads: helpers, size, trim", function()
    local thread = llm.thread("Be brief.", "What?")
    equal(thread, { llm.system "Be brief.", llm.user "What?" })
    equal(llm.thread(nil, "What?"), { llm.user "What?" })
    for i = 1, 3 do
      thread[#thread + 1] = json.seal(llm.assistant("reply " .. i))
      thread[#thread + 1] = llm.tool("c" .. i, "result " .. i)
    end
    local size = llm.size(thread)
    test.ok(llm.trim(thread))
    equal(#thread, 6)
    equal(thread[3].content, "reply 2")
    test.ok(llm.size(thread) < size)
    test.ok(llm.trim(thread))
    equal(llm.trim(thread), false)
    equal(#thread, 4)
    equal(llm.trim(thread, 10000), true)
    equal(llm.trim(thread, 1), false)
  end },

  { "threads: what is shown is sealed, and a nudge is still added to it", function()
    local thread, kit = llm.thread(nil, "What?"), {}
    turns.show(thread, kit, "Observation: 4")
    equal(json.encode(thread[2]), json.encode(llm.user "Observation: 4"))
    raises(function() return thread[2].content end, "makes a table of it")
    prompt.nudge(thread, "Go on.")
    equal(thread[2], llm.user "Observation: 4\n\nGo on.")
    thread[3] = json.seal(llm.assistant "5")
    prompt.nudge(thread, "Again.")
    raises(function() return thread[3].content end, "makes a table of it")
    equal(thread[4], llm.user "Again.")
  end },
}
