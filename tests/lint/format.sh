#!/bin/sh
# tests/lint/format.sh [ROOT]: all C files are as clang-format (Debian 12: version 14) leaves them.
# To mend: clang-format -i on the files that are named.
set -u
root=${1:-$(dirname "$0")/../..}
cd "$root" || exit 2
if ! command -v clang-format >/dev/null; then
    echo "clang-format is missing; Debian: apt-get install clang-format"
    exit 1
fi
files=$(find src tests bench -name '*.[ch]' ! -path 'tests/data/*' 2>/dev/null | LC_ALL=C sort)
[ -n "$files" ] || { echo "no C file found below $root"; exit 1; }
out=$(clang-format --dry-run -Werror --style=file $files 2>&1) && exit 0
printf '%s\n' "$out" | sed -n 's/^\([^: ]*:[0-9]*\):.*error:/\1:/p' | head -40
printf '%s\n' "$out" | sed -n 's/^\([^: ]*\):[0-9]*:.*error:.*/\1/p' | uniq -c | sed 's/^ *//;s/$/ (places)/'
printf '%s\n' "$out" | grep -q 'error:' || printf '%s\n' "$out"
exit 1
