# The library against the world: streaming from a server, SQLite files, full-text search, and what the
# user's editor and luacheck get.
. "$(dirname "$0")/lib.sh"
printf '{"question":"Say it.","answer":"42"}\n' >rows.jsonl

step "on_text gets the reply as it comes, in order, and may neither wait nor be survived by a call"
cat >streams.lua <<'EOF'
local ipw, llm = require "ipw", require "ipw.llm"
return { name = "streams", run = function(query)
  local pieces, n = {}, 0
  local reply = llm.chat { messages = llm.thread(nil, query.prompt), on_text = function(piece, kind)
    assert(kind == "text")
    n = n + 1
    pieces[n] = piece
    local ok, why = pcall(ipw.sleep, 0.1)
    assert(not ok and tostring(why):find "nothing may wait")
    -- In a coroutine it might; what is there at once does not wait.
    ok, why = pcall(coroutine.wrap(function() return #ipw.map({}, print) end))
    assert(ok and why == 0, tostring(why))
    assert(not pcall(coroutine.wrap(function() llm.chat { messages = {} } end)))
  end }
  assert(table.concat(pieces) == reply.text, "pieces")
  local ok, why = pcall(llm.chat, { messages = llm.thread(nil, "again"), on_text = function() error "enough" end })
  assert(not ok and tostring(why):find "enough", tostring(why))
  ok, why = pcall(llm.chat, { messages = llm.thread(nil, "x"), on_text = 5 })
  assert(not ok and tostring(why):find "expected a function")
  assert(n > 1, "it came in one piece")
  return reply.text
end }
EOF
printf 'itl 30\ntext one two three four\n---\nendless\n' >stream.llm
start_fake --script stream.llm
expect_exit 0 agent run streams.lua --dataset rows.jsonl --model fake-model --base-url "$BASE_URL" --output streams
assert_json streams/traces.jsonl "d[0]['completed'] is True and d[0]['error'] is None"
assert_json streams/traces.jsonl "[s['outcome'] for t in d[0]['turns'] for s in t['spans'] if s['kind'] == 'lm'] == ['ok', 'cancelled']"
stop_fake

step "read-only queries"
mkdir -p space corpus/deep outside
python3 - <<'EOF'
import sqlite3
for path in ("space/shop.db", "outside/other.db"):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE items (name TEXT, price REAL, n INTEGER, raw BLOB)")
    db.executemany("INSERT INTO items VALUES (?, ?, ?, ?)",
                   [("pen", 1.5, 3, b"\xff\x00"), ("book", 12.0, None, None), ("ink", 7, 1 << 60, None)])
    db.commit()
EOF
cat >corpus/holiday.txt <<'EOF'
Requests for holidays are made in the office, by the Friday before.
EOF
printf '# Travel\nTrains are booked by the traveller. Planes are not.\n' >corpus/deep/travel.md
printf 'binary \0 holiday' >corpus/b.bin
printf 'hidden holiday' >corpus/.hidden
cat >db_test.lua <<'EOF'
local sqlite, test, json = require "ipw.sqlite", require "ipw.test", require "ipw.json"
local function fails(pattern, value, why)
  test.equal(value, nil)
  test.matches(why, pattern)
end
return {
  { "rows by column, values, null, more", function()
    local rows, more = sqlite.query("shop.db", "SELECT name, price, n FROM items WHERE price > ? ORDER BY name", { 5 })
    test.equal(rows, { { name = "book", price = 12.0, n = json.null }, { name = "ink", price = 7.0, n = 1 << 60 } })
    test.equal(more, false)
    rows, more = sqlite.query("shop.db", "SELECT name FROM items", nil, { rows = 1 })
    test.equal(#rows, 1)
    test.equal(more, true)
    test.matches(sqlite.schema "shop.db", "CREATE TABLE items")
    test.equal(#sqlite.query("shop.db", "SELECT raw FROM items WHERE name = 'pen'"), 1)
  end },
  { "nothing but SELECT", function()
    for _, sql in ipairs { "DELETE FROM items", "DROP TABLE items", "ATTACH 'x.db' AS x", "PRAGMA user_version = 5",
      "INSERT INTO items VALUES (1,2,3,4)", "CREATE TABLE t (a)", "VACUUM INTO 'copy.db'", "SELECT load_extension('x')",
      "SELECT hex(fts3_tokenizer('simple'))" } do
      local value, why = sqlite.query("shop.db", sql)
      test.equal(value, nil, sql)
      test.ok(why, sql)
    end
    fails("one statement", sqlite.query("shop.db", "SELECT 1; SELECT 2"))
    fails("SQL text is empty", sqlite.query("shop.db", "-- nothing"))
    fails("syntax error", sqlite.query("shop.db", "SELEC 1"))
    fails("takes 1 values but got 0", sqlite.query("shop.db", "SELECT ?"))
    test.equal(sqlite.query("shop.db", "SELECT count(*) AS n FROM items")[1].n, 3)
  end },
  { "an endless query ends at its time, and a huge answer is refused", function()
    local endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
    fails("took too long", sqlite.query("shop.db", endless, nil, { seconds = 0.1 }))
    local three = "SELECT hex(zeroblob(1500000)) AS x"
    fails("larger than", sqlite.query("shop.db", three .. (" UNION ALL " .. three):rep(3)))
    -- What one call of a function has to do is bounded: nothing could stop it.
    fails("too big", sqlite.query("shop.db", "SELECT instr(hex(zeroblob(15000000)), hex(zeroblob(7000000)) || 'x') AS x"))
    fails("too complex", sqlite.query("shop.db", "SELECT hex(zeroblob(90000)) LIKE '%' || hex(zeroblob(9000)) || 'x%' AS x"))
    local ok = pcall(require("ipw").map, { endless, "boom" }, function(sql)
      if sql == "boom" then require("ipw").sleep(0.05) error "boom" end
      return sqlite.query("shop.db", sql)
    end)
    test.ok(not ok)
  end },
  { "only where it may", function()
    fails("not in the workspace", sqlite.query(OUTSIDE .. "/other.db", "SELECT 1"))
    fails("not in the workspace", sqlite.query("../outside/other.db", "SELECT 1"))
    fails("no such file", sqlite.query("missing.db", "SELECT 1"))
    fails("not a database", sqlite.query(CORPUS .. "/holiday.txt", "SELECT 1 FROM x"))
  end },
  { "search", function()
    local hits = sqlite.search(CORPUS, "holiday request")
    test.equal(#hits, 1)
    test.equal(hits[1].path, "holiday.txt")
    test.ok(hits[1].score > 0)
    test.matches(hits[1].snippet, "Requests for holidays")
    test.equal(sqlite.search(CORPUS, "train")[1].path, "deep/travel.md")
    test.equal(sqlite.search(CORPUS, "zebra"), {})
    test.equal(#sqlite.search(CORPUS, 'the" OR *  NEAR( "made', { rows = 1 }), 1)
    fails("search text is empty", sqlite.search(CORPUS, "  "))
    fails("not in the workspace", sqlite.search("/etc", "root"))
  end },
}
EOF
sed -i "1i local CORPUS, OUTSIDE = '$WORK/corpus', '$WORK/outside'" db_test.lua
expect_exit 0 agent tool calculator '{"expression":"1"}'
"$IPW_AGENT" test db_test.lua --workspace space --read "$WORK/corpus" >out 2>err
code=$?
[ $code -eq 0 ] || fail "exit code $code"
check_out "5 passed, 0 failed"

step "the index follows its files"
cat >search.lua <<EOF
local sqlite, fs = require "ipw.sqlite", require "ipw.fs"
local test = require "ipw.test"
return { { "changes are seen", function()
  fs.write("a.txt", "about zebras")
  test.equal(#sqlite.search(fs.workspace(), "zebra"), 1)
  fs.write("b.txt", "more zebras")
  test.equal(#sqlite.search(fs.workspace(), "zebra"), 2)
end } }
EOF
expect_exit 0 agent test search.lua

step "the luacheckrc for users takes what new writes"
if command -v luacheck >/dev/null; then
    expect_exit 0 agent new tool mine
    expect_exit 0 luacheck -q --config "$IPW_SOURCE_DIR/library/luacheckrc" tools
fi

end_test
