--- Programs that stay: proc.open, and the tool python_session that uses it.
local ipw = require "ipw"
local proc = require "ipw.proc"
local test = require "ipw.test"
local equal, matches = test.equal, test.matches

local function no_line(child, seconds)
  local line, why, word = child:line(seconds)
  equal(line, nil)
  return word, why
end

return {
  { "a child is talked to line by line", function()
    local child <close> = assert(proc.open { "python3", "-u", "-c",
      "import sys\nfor l in sys.stdin: print('got', l.strip())" })
    assert(child:send "hello\nyou\n")
    equal(child:line(20), "got hello")
    equal(child:line(20), "got you")
    equal(no_line(child, 0.01), "timeout")
    assert(child:send "more\n")
    equal(child:line(20), "got more")
  end },

  { "its end is told, with its last words", function()
    local child <close> = assert(proc.open { "sh", "-c", "printf 'a\\r\\nb'; echo first >&2; echo oops >&2; exit 3" })
    equal(child:line(20), "a")
    local word, why = no_line(child, 20)
    equal(word, "gone")
    equal(why, "it ended with exit status 3: oops")
    equal(select(2, child:send "x"), why)
    child:close()
    equal(select(2, child:send "x"), "it is closed")
    child:close()
    local killed <close> = assert(proc.open { "sh", "-c", "kill -9 $$" })
    equal(select(2, no_line(killed, 20)), "it was ended by signal 9")
  end },

  { "P-12: a program that is missing", function()
    local child <close> = assert(proc.open { "no-such-program" })
    matches(select(2, no_line(child, 20)), "No such file or directory")
    matches(select(2, pcall(proc.open, {})), "expects a program")
    matches(tostring(select(2, pcall(proc.open, { "sh", seconds = 1 }))), "seconds")
  end },

  { "P-10: a child that says more than is read waits; a line without end is refused", function()
    local child <close> = assert(proc.open { "yes", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" })
    ipw.sleep(0.05)
    for _ = 1, 50000 do assert(child:line(20)) end
    local long <close> = assert(proc.open { "sh", "-c", "head -c 17000000 /dev/zero | tr '\\0' a; echo; sleep 100" })
    equal(no_line(long, 60), "too_long")
  end },

  { "P-11: a child that does not read, and one that closes its input", function()
    local deaf <close> = assert(proc.open { "sleep", "100" })
    local text, ok, why = ("x"):rep(4 << 20), true, nil
    for _ = 1, 5 do
      if ok then ok, why = deaf:send(text) end
    end
    matches(why, "it does not read")
    local shut <close> = assert(proc.open { "sh", "-c", "exec <&-; echo shut; sleep 0.05; echo on" })
    equal(shut:line(20), "shut")
    assert(shut:send(text))
    equal(shut:line(20), "on")
  end },

  { "two tasks cannot wait for one child; many children are refused", function()
    local child <close> = assert(proc.open { "cat" })
    local words = ipw.map({ 1, 2 }, function() return select(3, child:line(0.02)) end)
    table.sort(words)
    equal(words, { "busy", "timeout" })
    local open = {}
    for i = 1, 31 do open[i] = assert(proc.open { "cat" }) end
    equal(select(2, proc.open { "cat" }), "more than 32 children are open")
    for _, c in ipairs(open) do c:close() end
  end },

  { "python_session keeps variables", function()
    local python = test.tool "python_session"
    equal(python { code = "import math\nx = 20" }, "(it ran, and printed nothing)")
    equal(python { code = "x += 1\nprint('x is', x)\nx * 2" }, "x is 21\n42")
    equal(python { code = "```python\ndef f(n):\n    return math.factorial(n)\n```" }, "(it ran, and printed nothing)")
    equal(python { code = "f(5)" }, "120")
    local text, ok = python { code = "1 / 0" }
    equal(ok, false)
    equal(text, 'error: Traceback (most recent call last):\n  File "<code>", line 1, in <module>\n' ..
      "ZeroDivisionError: division by zero")
    equal(python { code = "x" }, "21", "an error ends nothing")
    text, ok = python { code = "raise SystemExit(3)" }
    equal(ok, false)
    matches(text, "SystemExit: 3")
    matches(select(1, python { code = "def (" }), "SyntaxError")
    equal(python { code = "import os, sys\nos.system('echo from sh'); sys.stdout.write('{\"n\": 99}\\n') and None" },
      'from sh\n{"n": 99}')
    equal(python { code = "input()" }:match "EOFError", "EOFError")
    text = python { code = "print('y' * 200000)" }
    matches(text, "bytes left out")
    assert(#text < 70000, #text)
  end },

  { "a session that hangs or dies is ended, and the next call has a new one", function()
    local python = test.tool "python_session"
    equal(python { code = "x = 1" }, "(it ran, and printed nothing)")
    local text, ok = python { code = "while True: pass", seconds = 1 }
    equal(ok, false)
    equal(text, "error: still running after 1 s; the session was ended, its variables are lost")
    matches(select(1, python { code = "x" }), "NameError")
    text = python { code = "import os\nos._exit(5)" }
    equal(text, "error: it ended with exit status 5; the session was ended, its variables are lost")
    equal(python { code = "6 * 7" }, "42")
  end },

  { "what is left open ends with the state", function() assert(proc.open { "sleep", "100" }) end },
}
