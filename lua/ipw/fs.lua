--- ipw.fs: files of the query's workspace.
---
--- Paths outside of the workspace are refused. A workspace can hold 256 MiB and 10,000 files and
--- folders (--workspace-size, --workspace-files), including attachments and the files of child
--- processes.
local core = require "ipw.core.fs"

local fs = {}

--- Reads a file: its bytes, or nil and a reason.
---@param path string relative to the workspace
---@return string? bytes, string? why
fs.read = core.read

--- Writes a file. Returns true; or nil and a reason, for example that the workspace is full.
---@param path string
---@param bytes string
---@return boolean? ok, string? why
fs.write = core.write

--- Size in bytes, or nil and a reason.
---@param path string
---@return integer? bytes, string? why
fs.size = core.size

--- Names of the files in the workspace, sorted.
---@return string[]
function fs.list()
  local names = core.list()
  table.sort(names)
  return names
end

--- Absolute path of the workspace (for child processes), or nil.
---@return string?
fs.workspace = core.workspace

return fs
