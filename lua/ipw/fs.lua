--- ipw.fs: files of the query's workspace.
---
--- Paths outside of it are refused. It can hold 256 MiB and 10,000 files and folders (--workspace-size,
--- --workspace-files), with those of child processes. A child process that makes folders more than 64 deep ends.
local core = require "ipw.core.fs"

local fs = {}

--- Reads a file.
---@param path string relative to the workspace
---@return string? bytes, string? why
fs.read = core.read

--- Writes a file with its folders.
---@param path string
---@param bytes string
---@return boolean? ok, string? why
fs.write = core.write

--- Size in bytes.
---@param path string
---@return integer? bytes, string? why
fs.size = core.size

--- Names of the files in the workspace, sorted. With `folder` ("." is the workspace): of its files and folders, these
--- with '/' at the end. Links are left out.
---@param folder? string
---@return string[]? names, string? why
function fs.list(folder)
  local names, why = core.list(folder)
  if not names then return nil, why end
  table.sort(names)
  return names
end

--- Absolute path of the workspace (for child processes), or nil.
---@return string?
fs.workspace = core.workspace

return fs
