-- Names of the library that a script uses and the library does not have: found, and no false alarms.
local names = require "ipw.cli.library_names"
local json = require "ipw.json"

local function said(source)
  local list = {}
  for _, problem in ipairs(names(source)) do list[#list + 1] = problem.line .. ": " .. problem.why end
  return list
end

local function finds(source, ...)
  local got, want = json.encode(said(source)), json.encode { ... }
  if got ~= want then error(("got %s, want %s, of:\n%s"):format(got, want, source), 2) end
end

local QEURY = [[ipw.http has no "qeury"; did you mean "query"?]]

return {
  { "a misspelt function", function()
    finds('local http = require "ipw.http"\nreturn http.qeury { a = 1 }', "2: " .. QEURY)
    finds("local http = require('ipw.http')\n\nreturn http.qeury { a = 1 }", "3: " .. QEURY)
    finds('local http <const> = require "ipw.http"\nlocal f = http.qeury', "2: " .. QEURY)
    finds('return require("ipw.http").qeury {}', "1: " .. QEURY)
    finds('#!/usr/bin/env ipw-agent\nlocal http = require "ipw.http"\nhttp:qeury()', "3: " .. QEURY)
    finds('local ipw = require "ipw"\nipw.slepe(1)', [[2: ipw has no "slepe"; did you mean "sleep"?]])
    finds('local json = require "ipw.json"\njson.nothing_like_it()', [[2: ipw.json has no "nothing_like_it"]])
  end },

  { "several modules in one statement, as the README writes them", function()
    finds('local llm, tools = require "ipw.llm", require "ipw.tools"\nllm.chta {}\ntools.opne {}\nllm.user "x"',
      [[2: ipw.llm has no "chta"; did you mean "chat"?]], [[3: ipw.tools has no "opne"; did you mean "open"?]])
    finds('local one, llm, two = 1, require "ipw.llm"\nllm.chta {}')
    finds('local llm, one = require "ipw.llm", 1\nllm.chta {} one.chta()',
      [[2: ipw.llm has no "chta"; did you mean "chat"?]])
  end },

  { "each name is said once; a module that is required twice is still one", function()
    finds('local http = require "ipw.http"\nhttp.qeury() http.qeury()', "2: " .. QEURY)
    finds('local function a() local http = require "ipw.http" return http.get end\n'
      .. 'local function b() local http = require "ipw.http" return http.qeury end', "2: " .. QEURY)
  end },

  { "comments and texts are no code", function()
    finds('local http = require "ipw.http"\n-- http.qeury\n--[[ http.qeury\n]] local s = "http.qeury" .. '
      .. '[==[\nhttp.qeury]==]\n'
      .. "local t = 'it\\'s http.qeury'\nreturn http.qeury", "7: " .. QEURY)
    finds('-- local http = require "ipw.http"\nhttp.qeury()')
  end },

  { "what the script sets itself, or asks for, is not a slip", function()
    finds('local http = require "ipw.http"\nfunction http.qeury() end\nhttp.qeury()')
    finds('local http = require "ipw.http"\nhttp.qeury = function() end\nhttp.qeury()')
    finds('local http = require "ipw.http"\nif http.qeury then http.qeury() end')
    finds('local http = require "ipw.http"\nlocal q = http.qeury or print')
    finds('local http = require "ipw.http"\nif not http.qeury then return end http.qeury()')
    finds('local http = require "ipw.http"\nif http.qeury == nil then return end')
  end },

  { "a name that stands for something else too is left alone", function()
    finds('local http = require "ipw.http"\nreturn function(http) return http.qeury end')
    finds('local http = require "ipw.http"\nfor _, http in ipairs(x) do http.qeury() end')
    finds('local http = require "ipw.http"\nhttp = setmetatable({}, { __index = http }) http.qeury()')
    finds('local http = require "ipw.http"\na, http = b, c\nhttp.qeury()')
    finds('local http = require "ipw.http".get\nhttp.qeury()')
    finds('local http = require "ipw.http" { a = 1 }\nhttp.qeury()')
    finds('local mine = require "my.http"\nmine.qeury()')
    finds('local http = require "ipw.http"\ncfg.http.qeury() cfg:http().qeury()')
    finds('local http = require "ipw.http"\nlocal function http() end http.qeury()')
  end },

  { "a field of a table's constructor is no assignment", function()
    finds('local http = require "ipw.http"\nlocal t = { http = 1, b = { 2; http = http.qeury } }', "2: " .. QEURY)
    finds('local http = require "ipw.http"\nlocal t = { run = function() http = 1 end }\nhttp.qeury()')
  end },

  { "the scripts that come along, and what is not Lua", function()
    local core = require "ipw.core.script"
    for _, path in ipairs { "agents/react.lua", "agents/tools.lua", "agents/single.lua", "lua/ipw/react.lua",
      "lua/ipw/tools.lua", "lua/ipw/dataset.lua", "lua/ipw/gaia.lua", "lua/ipw/llm.lua", "lua/ipw/http.lua" } do
      local source = assert(core.source("builtin:" .. path))
      finds(source)
    end
    for _, source in ipairs { "", "local", "local http = require", "local a, = require 'ipw.http'", "[[", '"', "--[[",
      "function", "for", "end end }", "local http = require 'ipw.http' http.", "\0\1", "local a <const" } do
      said(source)
    end
  end },
}
