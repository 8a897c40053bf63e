--- ipw.fs: files of the query's workspace.
---
--- Paths outside of the workspace are refused. A workspace can hold 256 MiB and 10,000 files and
--- folders (--workspace-size, --workspace-files), including attachments and the files of child
--- processes. A child process that makes folders more than 64 deep ends.
local core = require "ipw.core.fs"

local fs = {}

--- Reads a file: its bytes, or nil and a reason.
---@param path string relative to the workspace
---@return string? bytes, string? why
fs.read = core.read

--- Writes a file, and makes the folders of its path. Returns true; or nil and a reason, for example
--- that the workspace is full.
---@param path string
---@param bytes string
---@return boolean? ok, string? why
fs.write = core.write

--- Size in bytes, or nil and a reason.
---@param path string
---@return integer? bytes, string? why
fs.size = core.size

--- Names of the files in the workspace, sorted. With `folder` ("." is the workspace): names of its
--- files and folders, those of folders with '/' at the end; or nil and a reason. Links are left out.
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
