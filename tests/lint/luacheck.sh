#!/bin/sh
# tests/lint/luacheck.sh [ROOT]: luacheck over every Lua file that is shipped, with ROOT/.luacheckrc.
set -u
root=${1:-$(dirname "$0")/../..}
cd "$root" || exit 2
if ! command -v luacheck >/dev/null; then
    echo "luacheck is missing; Debian: apt-get install lua-check"
    exit 1
fi
files=$(find lua agents datasets tests/lua -name '*.lua' 2>/dev/null | LC_ALL=C sort)
[ -n "$files" ] || { echo "no Lua file found below $root"; exit 1; }
luacheck --no-color -q --config .luacheckrc $files
