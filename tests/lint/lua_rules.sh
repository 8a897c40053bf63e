#!/bin/sh
# tests/lint/lua_rules.sh ROOT BUILD: the rules of tests/rules.txt that are about how the
# code is written.
#
#   rule 7   never yield from a hook: the file that sets hooks yields nowhere
#   rule 14  the floors below script/ know no Lua: their object files import no lua_ name
set -u
root=${1:?usage: lua_rules.sh ROOT BUILD}
build=${2:?usage: lua_rules.sh ROOT BUILD}
bad=0

for file in $(grep -rl 'lua_sethook' "$root/src"); do
    if grep -n 'lua_yield' "$file"; then
        echo "$file: rule 7: sets a hook and yields"
        bad=1
    fi
done

for floor in base json io energy trace llm data; do
    lib=$build/libipw_$floor.a
    [ -f "$lib" ] || { echo "$lib is not there"; exit 1; }
    names=$(nm -u "$lib" 2>/dev/null | grep -oE '\bluaL?_[A-Za-z_]+' | sort -u)
    if [ -n "$names" ]; then
        echo "$lib: rule 14: imports" $names
        bad=1
    fi
done
exit $bad
