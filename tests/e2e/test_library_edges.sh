# What scripts get of files, databases and web pages that are odd but possible.
# Sanitizer: files, databases and pages that are odd.
. "$(dirname "$0")/lib.sh"

mkdir -p space corpus elsewhere
python3 - <<'EOF'
import os, sqlite3
db = sqlite3.connect("space/t.db")
db.execute("CREATE TABLE t (a, b)")
db.execute("CREATE INDEX i ON t (a)")
db.executemany("INSERT INTO t VALUES (?, ?)", [(i, str(i)) for i in range(5)])
db.commit()
for i in range(30):
    open("corpus/%d.txt" % i, "w").write("zebra number %d\n" % i)
open("corpus/empty.txt", "w")
open("corpus/latin.txt", "wb").write(b"caf\xe9 zebra")
os.symlink("../elsewhere", "corpus/link")
open("elsewhere/secret.txt", "w").write("zebra elsewhere")
for i in range(20):
    os.mkdir("folder%d" % i)
    open("folder%d/a.txt" % i, "w").write("lion %d" % i)
open("space/p.png", "wb").write(b"\x89PNG\r\n\x1a\n" + b"x" * 10)
open("space/j.jpg", "wb").write(b"\xff\xd8\xff\xe0")
open("space/g7.gif", "wb").write(b"GIF87a..")
open("space/g9.gif", "wb").write(b"GIF89a")
open("space/w.webp", "wb").write(b"RIFF\0\0\0\0WEBPVP8 ")
open("space/wave.wav", "wb").write(b"RIFF\0\0\0\0WAVEfmt ")
open("space/d.pdf", "wb").write(b"%PDF-1.7")
open("space/short", "wb").write(b"\x89P")
open("space/none", "w")
os.mkdir("space/sub")
os.mkfifo("space/fifo")
os.symlink("/etc/passwd", "space/out")
os.symlink("loop", "space/loop")
with open("space/huge", "wb") as f:
    f.truncate((64 << 20) + 1)
EOF

step "databases, searches, files"
cat >edges.lua <<EOF
local CORPUS, WORK = '$WORK/corpus', '$WORK'
EOF
cat >>edges.lua <<'EOF'
local sqlite, fs, json, test = require "ipw.sqlite", require "ipw.fs", require "ipw.json", require "ipw.test"
local core = require "ipw.core.fs"
local function fails(pattern, value, why)
  test.equal(value, nil)
  test.matches(why, pattern)
end
return {
  { "values of every kind go in, and come out", function()
    local row = sqlite.query("t.db", "SELECT ? AS int, ? AS real, ? AS text, ? AS yes, ? AS no, ? AS none, x'00ff' AS raw, " ..
      "typeof(?) AS kind", { 7, 1.5, "a b", true, false, json.null, json.null })[1]
    test.equal({ row.int, row.real, row.text, row.yes, row.no, row.none, row.kind },
      { 7, 1.5, "a b", 1, 0, json.null, "null" })
    test.equal(sqlite.query("t.db", "SELECT 1e999 AS x")[1].x == nil, false)
    test.equal(sqlite.query("t.db", "SELECT a FROM t WHERE b = ?", { "3" })[1].a, 3)
    test.equal(sqlite.query("t.db", "SELECT a FROM t WHERE a > 9"), {})
  end },
  { "a database may be described, and nothing set", function()
    for _, sql in ipairs { "PRAGMA table_list", "PRAGMA table_info(t)", "PRAGMA table_xinfo(t)", "PRAGMA index_list(t)",
      "PRAGMA data_version" } do
      test.ok(sqlite.query("t.db", sql), sql)
    end
    for _, sql in ipairs { "PRAGMA table_list = 5", "PRAGMA journal_mode", "PRAGMA journal_mode = WAL", "PRAGMA user_version",
      "PRAGMA writable_schema = 1", "PRAGMA", "BEGIN", "ATTACH 'a' AS b", "ANALYZE", "REINDEX", "EXPLAIN SELECT 1; SELECT 2" } do
      fails(".", sqlite.query("t.db", sql))
    end
    fails("got 2", sqlite.query("t.db", "SELECT ?", { 1, 2 }))
    fails("no such table", sqlite.query("t.db", "SELECT * FROM nope"))
    fails("not a database", sqlite.query("p.png", "SELECT 1 FROM t"))
    fails(".", sqlite.query("sub", "SELECT 1"))
    fails("not in the workspace", sqlite.query("out", "SELECT 1"))
    fails("no such file", sqlite.query("loop", "SELECT 1"))
    fails(".", sqlite.query("", "SELECT 1"))
  end },
  { "a search takes texts only, follows no link, and gives as many as asked", function()
    test.equal(#sqlite.search(CORPUS, "zebra", { rows = 100 }), 30)
    local hits, more = sqlite.search(CORPUS, "zebra", { rows = 5 })
    test.equal({ #hits, more }, { 5, true })
    test.equal(sqlite.search(CORPUS, "elsewhere"), {})
    test.equal(#sqlite.search(CORPUS, ("zebra "):rep(100)), 10)
    for i = 0, 19 do test.equal(#sqlite.search(WORK .. "/folder" .. i, "lion"), 1) end -- more folders than indexes kept
    test.equal(#sqlite.search(WORK .. "/folder0", "lion"), 1)
    fails("not in the workspace", sqlite.search("/", "x"))
    fails(".", sqlite.search(CORPUS .. "/nothing", "zebra"))
  end },
  { "a picture is known by its first bytes", function()
    for path, kind in pairs { ["p.png"] = "image/png", ["j.jpg"] = "image/jpeg", ["g7.gif"] = "image/gif", ["g9.gif"] = "image/gif",
      ["w.webp"] = "image/webp" } do
      test.matches(core.data_uri(path, true), "^data:" .. kind .. ";base64,")
      test.matches(core.data_uri(path, false), "^data:" .. kind .. ";base64,")
    end
    test.matches(core.data_uri("d.pdf", false), "^data:application/pdf;base64,JVBERi0xLjc=$")
    test.equal(core.data_uri("none", false), "data:application/octet-stream;base64,")
    test.equal(core.data_uri("short", false), "data:application/octet-stream;base64,iVA=")
    for _, path in ipairs { "d.pdf", "wave.wav", "short", "none" } do fails("PNG, JPEG, GIF or WebP", core.data_uri(path, true)) end
    fails("not a file", core.data_uri("sub", false))
    fails("not a file", core.data_uri("fifo", false))
    fails("larger than 20 MiB", core.data_uri("huge", false))
    fails("No such file", core.data_uri("nothing", false))
    fails("out of the workspace", core.data_uri("out", false))
  end },
  { "files: what is read, written and refused", function()
    fails("larger than 64 MiB", fs.read "huge")
    fails("not a file", fs.read "sub")
    fails("not a file", fs.read "fifo")
    fails("out of the workspace", fs.read "out")
    fails("out of the workspace", fs.read "loop")
    fails("out of the workspace", fs.write("out", "x"))
    fails(".", fs.write("fifo", "x"))
    fails(".", fs.write("sub", "x"))
    fails(".", fs.write("fifo/x", "x"))
    fails(".", fs.write("", "x"))
    test.equal(fs.read "none", "")
    test.ok(fs.write("new", ""))
    test.equal({ fs.read "new", fs.size "new" }, { "", 0 })
    test.ok(fs.write("new", ("x"):rep(100000)) and fs.size "new" == 100000)
    test.ok(fs.write("new", "y") and fs.read "new" == "y")
    local found = {}
    for _, name in ipairs(fs.list()) do found[name] = true end
    test.ok(found.new and not found["."] and not found[".."])
  end },
}
EOF
timeout 60 "$IPW_AGENT" test edges.lua --workspace space --read "$WORK/corpus" $(for i in $(seq 0 19); do echo --read "$WORK/folder$i"; done) >out 2>err
code=$?
[ $code -eq 0 ] || fail "exit code $code"

step "web pages"
cat >server.py <<'EOF'
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def say(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers: self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def do_GET(self):
        n = int(self.headers.get("Content-Length", 0))
        got = self.rfile.read(n)
        path = self.path.split("?")[0]
        here = "http://127.0.0.1:%d" % self.server.server_port
        if path == "/say": self.say(200, ("%s %s" % (self.command, got.decode())).encode(), [("X-One", "a"), ("X-One", "b"), ("Content-Type", "text/plain")])
        elif path == "/large": self.say(200, b"x" * 100000)
        elif path == "/odd": self.say(200, b"\xff\x00\xfe")
        elif path == "/wide": self.say(200, "\u20ac".encode() * 30000)
        elif path == "/none": self.say(404, b"not here", [("Content-Type", "text/plain")])
        elif path.startswith("/to/"): self.say(int(path[4:]), b"", [("Location", "/say")])
        elif path == "/loop": self.say(302, b"", [("Location", "/loop")])
        elif path == "/nowhere": self.say(302, b"", [("Location", "ftp://x/")])
        elif path == "/bad": self.say(302, b"", [("Location", "http://[bad/")])
        elif path == "/same": self.say(307, b"", [("Location", here.replace("http", "HTTP") + "/say")])
        elif path == "/cut":
            self.send_response(200); self.send_header("Content-Length", "100"); self.end_headers(); self.wfile.write(b"half"); self.close_connection = True
        elif path == "/many":
            self.send_response(200)
            for i in range(200): self.send_header("X-%d" % i, "v")
            self.send_header("Content-Length", "0"); self.end_headers()
        else: self.say(200, b"ok")
    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
print("port", s.server_port, flush=True)
s.serve_forever()
EOF
mkfifo server.out
python3 server.py >server.out 2>server.err & # clients that leave early are no news
FAKES="$FAKES $!"
read -r word PORT <server.out
cat >web.lua <<EOF
local AT = "http://127.0.0.1:$PORT"
EOF
cat >>web.lua <<'EOF'
local http, json = require "ipw.http", require "ipw.json"
local function get(path, more)
  local request = { url = AT .. path }
  for key, value in pairs(more or {}) do request[key] = value end
  return http.request(request)
end
return { name = "web", run = function()
  local page = assert(get("/say"))
  assert(page.status == 200 and page.body == "GET " and page.headers["x-one"] == "a, b", page.body)
  assert(get("/say", { body = "b" }).body == "POST b")
  assert(get("/say", { method = "PUT", body = "b" }).body == "PUT b")
  assert(get("/say", { method = "HEAD" }).body == "")
  assert(get("/say", { headers = { ["X-Mine"] = "1" } }).status == 200)
  assert(get("/odd").body == "\xff\x00\xfe" and #get("/wide").body == 90000 and #get("/large").body == 100000)
  for status, said in pairs { [301] = "GET ", [302] = "GET ", [303] = "GET ", [307] = "POST b", [308] = "POST b" } do
    assert(get("/to/" .. status, { body = "b" }).body == said, status)
    assert(get("/to/" .. status, { body = "b", redirects = 0 }).status == status, status)
  end
  assert(get("/to/303", { method = "HEAD" }).body == "")
  assert(get("/to/304", {}).status == 304)
  assert(get("/same").body == "GET ")
  assert(http.get(AT .. "/say", { max_bytes = "1K" }).status == 200)
  local function fails(pattern, value, why, word)
    assert(value == nil and tostring(why):find(pattern), tostring(why))
    return word
  end
  fails("redirect", get("/loop"))
  fails("redirect", get("/loop", { redirects = 20 }))
  fails(".", get("/nowhere"))
  fails("redirect", get("/bad"))
  assert(fails(".", get("/large", { max_bytes = 1000 })) == "limit")
  fails(".", get("/cut"))
  fails("404", http.get(AT .. "/none"))
  assert(get("/many").status == 200)
  assert(fails("%-%-web", http.get "http://10.0.0.1/") == "permission")
  assert(fails("%-%-web", http.get "http://user@10.0.0.1:80/") == "permission")
  fails(".", http.get "http://")
  fails(".", http.get "no address")
  fails(".", http.get("http://nowhere.invalid/", { seconds = 5 }))
  fails(".", http.get "http://127.0.0.1:1/")
  return "42"
end }
EOF
printf '{"question":"Q?","answer":"42"}\n' >rows.jsonl
start_fake --bench 0
expect_exit 0 agent run web.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output inside \
    --web-allow "127.0.0.1:$PORT" --web-allow 127.0.0.1:1
assert_json inside/traces.jsonl "[q['error'] for q in d] == [None]"
expect_exit 0 agent replay inside --mode hermetic --agent web.lua --output again
check_out "identical to the saved run"

end_test
