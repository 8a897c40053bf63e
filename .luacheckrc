-- Scripts run in our own sandbox: plain Lua 5.4 without io, debug and the rest of os and package.
std = "lua54"
max_line_length = 120
not_globals = { "io", "debug", "dofile", "loadfile", "collectgarbage", "package" }
-- Tools take (args, ctx) and agents (query, cfg), whether they use both or not.
unused_args = false
exclude_files = { "build/**", "runs/**" }
