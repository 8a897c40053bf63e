#!/bin/sh
# tests/lint/lua_docs.sh [ROOT]: docs/lua.md and library/ are what scripts/lua-docs writes.
set -u
root=${1:-$(dirname "$0")/../..}
exec python3 "$root/scripts/lua-docs" --check
