# A run whose last query waits at a gate until the test opens it: rows.jsonl, gated.lua, $GATE, open_gate.
# Source it after lib.sh.
cat >gate.py <<'PY'
import http.server, threading
opened = threading.Event()
class Gate(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        opened.set() if self.path == "/open" else opened.wait(200)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gate)
print(server.server_address[1], file=open("gate.port", "w"))
server.serve_forever()
PY
python3 gate.py &
FAKES="$FAKES $!"
await_lines gate.port
GATE=127.0.0.1:$(cat gate.port)
cat >rows.jsonl <<ROWS
{"question":"one","answer":"42"}
{"question":"two","answer":"41"}
{"question":"fail","answer":"42"}
{"question":"own","answer":"42"}
{"question":"http://$GATE/hold","answer":"42"}
ROWS
cat >gated.lua <<'LUA'
local llm, tools, http = require "ipw.llm", require "ipw.tools", require "ipw.http"
return { name = "gated", defaults = { tools = { "calculator" } }, run = function(query, cfg)
  if query.prompt == "fail" then error "made to fail" end
  if query.prompt == "own" then return nil, "a reason of its own" end
  if query.prompt:find "^http" then assert(http.get(query.prompt, { seconds = 200 })) end
  local kit <close> = tools.open(cfg.tools)
  local thread = { llm.user(query.prompt) }
  for _ = 1, 4 do
    local reply = llm.chat { messages = thread, tools = kit.schemas }
    thread[#thread + 1] = reply.message
    if #reply.calls == 0 then return reply.text end
    for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
  end
end }
LUA

open_gate() { python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=60).read()' "http://$GATE/open"; }
