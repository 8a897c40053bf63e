--- python_session: runs Python code in a session of the query: variables and imports stay from call to
--- call.
--
-- The session is one child process in the query's workspace and in a sandbox (ipw.proc), started by the
-- first call.  It reads one JSON object a line and answers with one.  What the code prints goes to a
-- file of the child, so that it cannot be taken for an answer.

local json = require "ipw.json"
local proc = require "ipw.proc"

local SHOWN_BYTES = 64 * 1024

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
    print(json.dumps({"n": m["n"], "ok": ok, "text": text.decode("utf-8", "replace")}), file=said, flush=True)
]]

local session, number = nil, 0   -- of this query: each has a Lua state of its own

local function close()
  session:close()
  session = nil
end

--- The answer to this request; other lines of the child do not count.
local function answer(seconds)
  local left = 1000
  while left > 0 do
    local line, why, word = session:line(seconds)
    if not line then return nil, word == "timeout" and ("still running after %g s"):format(seconds) or why end
    local said = json.decode(line)
    if type(said) == "table" and said.n == number and type(said.text) == "string" then return said end
    left = left - 1
  end
  return nil, "it answers with other lines"
end

return {
  name   = "python_session",
  about  = "Runs Python 3 code; variables and imports stay for the next call. Returns what it prints, and the " ..
           "value of a last expression.",
  input  = {
    { "code", "string", "One or several lines of Python." },
    { "seconds", "number", "Time limit.", default = 20, min = 1, max = 120 },
  },
  needs  = { "proc" },
  serial = true,

  run = function(args)
    local why
    if not session then
      session, why = proc.open { "python3", "-I", "-u", "-c", DRIVER, memory = "1G", cpu = 600 }
      if not session then return nil, why end
    end
    number = number + 1
    local code = args.code:match("^%s*```[%w]*\r?\n(.-)\n?```%s*$") or args.code
    session:send(json.encode { code = code, n = number, most = SHOWN_BYTES } .. "\n")
    local said
    said, why = answer(args.seconds)
    if not said then
      close()
      return nil, why .. "; the session was ended, its variables are lost"
    end
    local text = said.text:gsub("%s+$", "")
    if not said.ok then return nil, text end
    return text ~= "" and text or "(it ran, and printed nothing)"
  end,
}
