--- ipw.command: finds a command that is a Lua file, and runs it.
--
-- A built-in command is lua/ipw/cli/NAME.lua; a user's own is commands/NAME.lua on the usual path.  The
-- file returns a table (docs/commands.md); script/command_file.c reads it for the option parser.
-- `run(io, o, args)` gets what it may use, the options, and the other words of the command line; it returns
-- the exit status.  It ends early with io.usage(text) for wrong usage, or io.fail(text, status).

local script = require "ipw.core.script"

local command = {}

--- The command's table; nil if there is none of this name.
function command.load(name, built_in)
  if built_in then return require("ipw.cli." .. name) end
  if not name:find "^[%w_%-]+$" then return nil end
  local path = script.find("commands", name)
  if not path then return nil end
  local declared = script.load(path)
  if type(declared) ~= "table" or type(declared.run) ~= "function" then
    error(path .. ": a command's file must return a table with a function `run`", 0)
  end
  return declared
end

--- What `run` uses besides the C functions of `io`.
local function with_ends(io, name)
  function io.usage(text, ...)
    io.fail(("%s: %s"):format(name, select("#", ...) > 0 and text:format(...) or text), 2)
  end
  function io.fail(text, status) error({ status = status or 1, text = text }, 0) end
  --- io.call with the exit status of each code of an error.
  function io.called(status_of, ...)
    local results = table.pack(pcall(io.call, ...))
    local failed = results[2]
    if results[1] then return table.unpack(results, 2, results.n) end
    if type(failed) == "table" and status_of[failed.code] then io.fail(failed.message, status_of[failed.code]) end
    error(failed, 0)
  end
  return io
end

local OF_OUTPUT = { io = true, exists = true, permission = true }

--- The text of an error and its status: 1 if the output failed, else the command's own.
local function ending(failed, declared)
  if type(failed) ~= "table" then return tostring(failed), declared.failed end
  return failed.text or failed.message, failed.status or OF_OUTPUT[failed.code] and 1 or declared.failed
end

--- Runs a function of a command's table; returns the exit status.
function command.ran(io, declared, name, what, ...)
  local ok, status = pcall(declared[what], with_ends(io, name), ...)
  if ok then return status or 0 end
  local text, code = ending(status, declared)
  if not text or not code then error(status, 0) end
  io.warn("ipw-agent: " .. text)
  if code == 2 then io.warn(("ipw-agent: see ipw-agent %s --help"):format(name)) end
  return code
end

--- The words of a command with `runs`, each the path of the run that it means (ipw.saved_runs); "last": without a
--- word the newest.
local function with_runs(io, declared, name, o, args)
  local find = require("ipw.saved_runs").find
  local function resolve()
    for i, word in ipairs(args) do
      local path, why = find(word)
      if not path then error({ text = why, status = 3 }, 0) end
      args[i] = path
    end
    if #args == 0 and declared.runs == "last" and not o.list then
      local path, why = find()
      if not path then error({ text = why, status = 2 }, 0) end
      args[1] = path
    end
  end
  return command.ran(io, { run = resolve, failed = declared.failed }, name, "run")
end

--- The same by name, for the program: `what` is "run" or "total".
function command.call(io, name, built_in, what, ...)
  local declared = command.load(name, built_in)
  local status = declared.runs and what == "run" and with_runs(io, declared, name, ...) or 0
  return status ~= 0 and status or command.ran(io, declared, name, what, ...)
end

return command
