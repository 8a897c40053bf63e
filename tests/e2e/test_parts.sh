# Pictures and files as parts of a message: what the server gets, what is recorded, what is refused.
. "$(dirname "$0")/lib.sh"

mkdir -p set/files
python3 - <<'PY'
import base64, json, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + \
    chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
open("dot.png", "wb").write(png)
open("expected.json", "w").write(json.dumps("data:image/png;base64," + base64.b64encode(png).decode()))
open("rows.jsonl", "w").write(json.dumps({"question": "What colour?", "answer": "42"}) + "\n")
PY
B64=$(base64 -w0 dot.png)
cat >see.lua <<LUA
local llm, fs, ipw, proc = require "ipw.llm", require "ipw.fs", require "ipw", require "ipw.proc"
local function why(f, ...)
  local ok, e = pcall(f, ...)
  return ok and "nothing" or e.message
end
return {
  name = "see",
  run = function(query)
    local bytes = {}
    for a, b, c, d in ("$B64"):gmatch "(.)(.)(.)(.)" do
      local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
      local n = 0
      for _, ch in ipairs { a, b, c, d } do n = n * 64 + (ch == "=" and 0 or digits:find(ch, 1, true) - 1) end
      bytes[#bytes + 1] = string.char(n >> 16, n >> 8 & 255, n & 255):sub(1, d == "=" and (c == "=" and 1 or 2) or 3)
    end
    fs.write("dot.png", table.concat(bytes))
    fs.write("notes.pdf", "%PDF-1.4 x")
    fs.write("text.png", "not a picture")
    for n = 0, 5 do fs.write("raw" .. n, ("\0\255\16\131\16\81"):sub(1, n)) end
    assert(proc.run { "truncate", "-s", "21M", "large.gif" })
    local raw = {}
    for n = 0, 5 do raw[n + 1] = llm.file("raw" .. n).file.file_data end
    ipw.note("why", {
      text = why(llm.image, "text.png"), missing = why(llm.image, "gone.png"), out = why(llm.image, "../x.png"),
      large = why(llm.image, "large.gif"), part = why(llm.user, { 5 }), none = why(llm.user, {}),
      pdf = why(llm.image, "notes.pdf"), raw = raw,
    })
    local thread = { llm.user { query.prompt, llm.image("dot.png", "low"), llm.file("notes.pdf") } }
    local reply = llm.chat { messages = thread }
    thread[#thread + 1] = reply.message
    thread[#thread + 1] = llm.user "Sure?"
    return llm.chat { messages = thread }.text
  end,
}
LUA

step "the server gets text, picture and file"
start_fake --bench 0
expect_exit 0 agent run see.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output seen
grep '^{' "$FAKE_LOG" | head -1 >request.json
assert_json request.json 'd["messages"][0]["content"][0] == {"type": "text", "text": "What colour?"} or d["messages"][0]["content"][0]["text"].startswith("What")'
assert_json request.json 'd["messages"][0]["content"][1] == {"type": "image_url", "image_url": {"detail": "low", "url": json.load(open("expected.json"))}}'
assert_json request.json 'd["messages"][0]["content"][2] == {"type": "file", "file": {"filename": "notes.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQgeA=="}}'

step "the record holds the picture once"
assert_json seen/events.jsonl 'sum(json.dumps(e).count("data:image/png") for e in d if e["event"] == "lm_inference_start") == 1'

step "what is refused says why"
NOTE='[e["data"] for e in d if e.get("name") == "why"][0]'
assert_json seen/events.jsonl "(lambda w: w['text'] == 'llm.image: text.png: is not a PNG, JPEG, GIF or WebP picture' and 'PNG' in w['pdf'])($NOTE)"
assert_json seen/events.jsonl "(lambda w: 'No such file' in w['missing'] and 'leads out' in w['out'])($NOTE)"
assert_json seen/events.jsonl "(lambda w: w['large'] == 'llm.image: large.gif: is larger than 20 MiB' and 'part 1' in w['part'] and 'expected' in w['none'])($NOTE)"
assert_json seen/events.jsonl "[__import__('base64').b64decode(u.split(',')[1]) for u in $NOTE['raw']] == [b'\\0\\xff\\x10\\x83\\x10\\x51'[:n] for n in range(6)]"

end_test
