--- The tools of files, text and programs; and what a tool's table declares: seconds, retries, serial.
local fs = require "ipw.fs"
local ipw = require "ipw"
local tools = require "ipw.tools"
local test = require "ipw.test"
local equal, matches = test.equal, test.matches

local list, search = test.tool "list_files", test.tool "search_files"
local write, edit = test.tool "write_file", test.tool "edit_file"
local shell, think = test.tool "shell", test.tool "think"

local function refused(pattern, text, ok)
  equal(ok, false, text)
  matches(text, pattern)
end

--- A tool of a file of its own, whose calls are measured and limited as those of built-in ones.
local function of_file(name, source)
  fs.write(name .. ".lua", source)
  return test.tool(fs.workspace() .. "/" .. name .. ".lua")
end

return {
  { "write_file makes folders, replaces and continues", function()
    equal(write { path = "w/deep/a.txt", content = "one\ntwo" }, "w/deep/a.txt: 7 bytes, 2 lines")
    equal(write { path = "w/deep/a.txt", content = "\nthree\n", append = true }, "w/deep/a.txt: 14 bytes, 3 lines")
    equal(fs.read "w/deep/a.txt", "one\ntwo\nthree\n")
    equal(write { path = "w/empty.txt", content = "" }, "w/empty.txt: 0 bytes, 0 lines")
    equal(write { path = "w/new.txt", content = "x", append = true }, "w/new.txt: 1 bytes, 1 lines")
  end },

  { "S-1: a name that leads out, is a folder or has a line end is refused", function()
    for _, path in ipairs { "../x", "/tmp/ipw-x/y", "w/../../x/y", "../made/here" } do
      refused("leads out of the workspace", write { path = path, content = "x" })
    end
    refused("Is a directory", write { path = "w", content = "x" })
    refused("Not a directory", write { path = "w/empty.txt/b", content = "x" })
    refused("control characters", write { path = "a\nb", content = "x" })
    refused("leads out", list { folder = ".." })
    refused("leads out", search { text = "x", path = "/etc" })
    refused("leads out", edit { path = "../x", old = "a", new = "b" })
    refused("No such file", list { folder = "none" })
    local out = shell { command = "ln -s / root && ln -s /etc/passwd pw && echo made" }
    equal(out, "made")
    refused("leads out", list { folder = "root" })
    refused("leads out", write { path = "root/tmp/ipw-x", content = "x" })
    refused("leads out", edit { path = "pw", old = "root", new = "b" })
    assert(not list():find("root/", 1, true), "a link is listed")
  end },

  { "list_files shows folders and sizes, and says that there are more", function()
    for i = 1, 3 do fs.write(("l/%d.txt"):format(i), ("x"):rep(i)) end
    fs.write("l/in/b.txt", "four")
    equal(list { folder = "l" },
      "l/1.txt  (1 bytes)\nl/2.txt  (2 bytes)\nl/3.txt  (3 bytes)\nl/in/\nl/in/b.txt  (4 bytes)")
    equal(list { folder = "./l/in/" }, "l/in/b.txt  (4 bytes)")
    matches(list(), "l/in/b%.txt")
    for i = 1, 520 do fs.write(("many/%03d"):format(i), "") end
    local text = list { folder = "many" }
    matches(text, "many/500  %(0 bytes%)\n%[%.%.%. more: only the first 500 are listed")
    shell { command = "rm -r many; mkdir none2" }
    equal(list { folder = "none2" }, "There are no files here.")
  end },

  { "search_files finds lines, with a limit that it tells", function()
    fs.write("s/a.txt", "Alpha\r\nbeta\nGAMMA alpha\n")
    fs.write("s/t/b.txt", "nothing\nalpha (1+1)\n")
    fs.write("s/bin", "alpha\0alpha")
    equal(search { text = "alpha", path = "s" },
      "s/a.txt:1: Alpha\ns/a.txt:3: GAMMA alpha\ns/t/b.txt:2: alpha (1+1)\n[1 files are not text or too large]")
    equal(search { text = "Alpha", path = "s/a.txt", match_case = true }, "s/a.txt:1: Alpha")
    equal(search { text = "(1+1)", path = "./s/t/" }, "s/t/b.txt:2: alpha (1+1)")
    equal(search { text = "absent", path = "s/a.txt" }, "No line contains it (1 files).")
    refused("nothing to look for", search { text = "" })
    fs.write("s/long.txt", ("many\n"):rep(300) .. ("many "):rep(200))
    local text = search { text = "many", path = "s/long.txt" }
    matches(text, "s/long%.txt:200: many\n%[only the first 200 lines are shown%]$")
    text = search { text = "many many", path = "s/long.txt" }
    matches(text, "s/long%.txt:301: many.*bytes left out")
    assert(#text < 500, #text)
  end },

  { "edit_file replaces one place, or all, and helps when there is none", function()
    fs.write("e.txt", "one two\nthree two\nthe lazy dog\n")
    refused("occurs 2 times %(lines 1, 2, %.%.%.%)", edit { path = "e.txt", old = "two", new = "2" })
    equal(edit { path = "e.txt", old = "three two", new = "%1 three" }, "e.txt: 1 replaced, first in line 2")
    equal(fs.read "e.txt", "one two\n%1 three\nthe lazy dog\n")
    refused("line 3 has:\nthe lazy dog", edit { path = "e.txt", old = "the lasy dog", new = "x" })
    refused("is not in it$", edit { path = "e.txt", old = "quite another thing", new = "x" })
    refused("write_file", edit { path = "e.txt", old = "", new = "x" })
    equal(edit { path = "e.txt", old = "e", new = "", all = true }, "e.txt: 4 replaced, first in line 1")
    equal(fs.read "e.txt", "on two\n%1 thr\nth lazy dog\n")
  end },

  { "shell gives output and status; its cap can be seen", function()
    equal(shell { command = "echo a; echo b >&2" }, "a\n\nb")
    equal(shell { command = ":" }, "(it ran, and printed nothing)")
    refused("exit status 3\nhalf", shell { command = "echo half; exit 3" })
    refused("ended by signal 9", shell { command = "kill -9 $$" })
    refused("still running after 1 s\nbegun", shell { command = "echo begun; sleep 30", seconds = 1 })
    local text, ok = shell { command = "yes x | head -c 300000" }
    assert(ok and #text < 40000, #text)
    matches(text, "bytes left out")
  end },

  { "S-4: arguments reach a program as they are", function()
    fs.write("-rf", "dash")
    equal(search { text = "$(echo x)", path = "-rf" }, "No line contains it (1 files).")
    matches(list(), "%-rf  %(4 bytes%)")
  end },

  { "think notes a thought", function()
    equal(think { thought = "first this, then that" }, "Noted.")
    refused("empty", think { thought = " " })
  end },

  { "a call that takes too long ends with the outcome timeout", function()
    local slow = of_file("slow", [[
      local ipw = require "ipw"
      return { name = "slow", about = "Waits.", seconds = 0.05, input = { { "s", "number", "How long." } },
        run = function(args) ipw.sleep(args.s); return "done" end }]])
    equal(slow { s = 0 }, "done")
    local text, ok = slow { s = 100 }
    equal(text, "error: no result within 0.05 s")
    equal(ok, false)
    local kit <close> = tools.open { fs.workspace() .. "/slow.lua" }
    local _, _, outcome = kit:invoke("slow", { s = 100 })
    equal(outcome, "timeout")
  end },

  { "the program of a call that takes too long is ended with it", function()
    local slow = of_file("child", [[
      local proc = require "ipw.proc"
      return { name = "child", about = "Waits.", seconds = 0.2,
        run = function() proc.run { "sh", "-c", "sleep 0.6; touch late" } return "done" end }]])
    matches(slow {}, "no result within 0.2 s")
    equal((shell { command = "sleep 0.8; ls late 2>/dev/null; echo seen", seconds = 20 }), "seen")
  end },

  { "a call is repeated if the tool says that it helps, and never more often than it declares", function()
    local tries = 0
    local tool = { name = "again", about = "Fails.", retries = 1, input = { { "until_try", "integer", "N." } },
      run = function(args)
        tries = tries + 1
        if tries >= args.until_try then return "try " .. tries end
        if args.until_try == 9 then error { code = "network", message = "no route", retryable = true } end
        return nil, "busy", args.until_try ~= 7
      end }
    local again = test.tool(tool)
    equal(again { until_try = 2 }, "try 2")
    tries = 0
    equal(again { until_try = 5 }, "error: busy")
    equal(tries, 2)
    tries = 0
    equal(again { until_try = 7 }, "error: busy")
    equal(tries, 1, "not worth a repetition")
    tries = 0
    equal(again { until_try = 9 }, "error: the tool failed: no route")
    equal(tries, 2)
  end },

  { "what a table declares is checked", function()
    local function wrong(field, value, pattern)
      local tool = { name = "x", about = "y", run = print, serial = true }
      tool[field] = value
      test.raises(function() tools.open { tool } end, pattern)
    end
    wrong("seconds", -1, "seconds: expected a number")
    wrong("seconds", "5", "seconds: expected a number")
    wrong("effects", true, "effects: expected what a call changes")
    wrong("retries", 9, "retries: expected a whole number from 0 to 5")
    wrong("retries", 1, "retries: a call that changes something %(serial%) cannot be repeated")
    for _, name in ipairs { "write_file", "edit_file", "shell", "python" } do
      local kit <close> = tools.open { name }
      equal(kit.list[1].serial, true, name)
    end
    assert(ipw.now() > 0)
  end },
}
