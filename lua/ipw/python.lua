--- ipw.python: a session of Python 3 in a child process (ipw.proc): variables and imports stay from one
--- piece of code to the next.
---
---   local session <close> = assert(python.open())
---   local said, ok = session:run("x = 6 * 7\nx", 10)     -- "42", true
---
--- The code can also call functions of the script.
local core = require "ipw.core.tool"
local json = require "ipw.json"
local proc = require "ipw.proc"

local SHOWN_BYTES, STRAY_LINES, CALLS_MAX = 64 * 1024, 1000, 100

local DRIVER = [[
import ast, json, os, sys, tempfile, traceback
asked, said = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
kept = tempfile.TemporaryFile()
os.dup2(kept.fileno(), 1)
os.dup2(kept.fileno(), 2)
sys.stdout = os.fdopen(1, "w", errors="replace", closefd=False)
sys.stderr = os.fdopen(2, "w", errors="replace", closefd=False)
scope = {"__name__": "__main__", "__builtins__": __builtins__}
def say(message):
    print(json.dumps(message), file=said, flush=True)
def function(name):
    def call(*args, **named):
        say({"call": name, "args": list(args), "named": named})
        answer = json.loads(asked.readline())
        if not answer["ok"]:
            raise RuntimeError(answer["text"])
        return answer["text"]
    call.__name__ = name
    return call
for name in sys.argv[1:]:
    scope[name] = function(name)
def run(code):
    tree = ast.parse(code, "<code>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<code>", "exec"), scope)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "<code>", "eval"), scope)
        if value is not None:
            print(repr(value))
for line in asked:
    m = json.loads(line)
    os.lseek(kept.fileno(), 0, os.SEEK_SET)
    os.ftruncate(kept.fileno(), 0)
    ok = True
    try:
        run(m["code"])
    except BaseException as e:
        ok = False
        trace = e.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != "<code>":
            trace = trace.tb_next
        traceback.print_exception(type(e), e, trace)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        ok = False
    size, most = os.fstat(kept.fileno()).st_size, m["most"]
    text = os.pread(kept.fileno(), most if size <= most else most // 2, 0)
    if size > most:
        text += b"\n[... %d bytes left out ...]\n" % (size - most // 2 * 2)
        text += os.pread(kept.fileno(), most // 2, size - most // 2)
    say({"n": m["n"], "ok": ok, "text": text.decode("utf-8", "replace"), "cut": max(0, size - most)})
]]

local python = {}

local Session = {}
Session.__index = Session

--- Starts a session. Calls of `functions` are answered by functions.call: a text, and whether it went well.
---@param functions? {names: string[], call: fun(name: string, args: any[], named: table): string, boolean}
---@return ipw.PythonSession? session, string? why
function python.open(functions)
  local child, why = proc.open { "python3", "-I", "-u", "-c", DRIVER, memory = "1G", cpu = 600,
    table.unpack(functions and functions.names or {}) }
  if not child then return nil, why end
  return setmetatable({ child = child, number = 0, functions = functions }, Session)
end

-- Answers a call of the code.
function Session:answer(said)
  local text, ok = "there are no functions", false
  if self.functions then
    text, ok = self.functions.call(said.call, type(said.args) == "table" and said.args or {},
      type(said.named) == "table" and said.named or {})
  end
  self.child:send(json.encode { text = text, ok = ok } .. "\n")
end

--- Runs code: what it printed with the value of a last expression, and whether there was no exception. After
--- nil ("timeout" at the limit) the session is over.
---@param code string
---@param seconds number between two calls of functions
---@return string? text, boolean|string ok, string? word
function Session:run(code, seconds)
  self.number = self.number + 1
  self.child:send(json.encode { code = code, n = self.number, most = SHOWN_BYTES } .. "\n")
  local stray, calls = 0, 0
  while stray < STRAY_LINES and calls <= CALLS_MAX do
    local line, why, word = self.child:line(seconds)
    if not line then
      self:close()
      if word == "timeout" then return nil, ("still running after %g s"):format(seconds), word end
      return nil, why
    end
    local said = json.decode(line)
    if type(said) == "table" and said.n == self.number and type(said.text) == "string" then
      if math.type(said.cut) == "integer" then core.cut(said.cut) end
      return (said.text:gsub("%s+$", "")), said.ok == true
    elseif type(said) == "table" and type(said.call) == "string" then
      calls = calls + 1
      self:answer(said)
    else
      stray = stray + 1
    end
  end
  self:close()
  return nil, calls > CALLS_MAX and ("more than %d calls of functions"):format(CALLS_MAX)
    or "it answers with other lines"
end

--- Ends the session.
function Session:close() self.child:close() end

Session.__close = Session.close

return python
