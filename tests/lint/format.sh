#!/bin/sh
# tests/lint/format.sh [ROOT]: all C files are as clang-format (Debian 12: version 14) leaves them, and
# no comment line is longer than ColumnLimit of .clang-format (clang-format does not reflow comments).
# Lines between "clang-format off" and "clang-format on" may be longer.
# To fix: clang-format -i on the named files; wrap the named comments.
set -u
root=${1:-$(dirname "$0")/../..}
cd "$root" || exit 2
if ! command -v clang-format >/dev/null; then
    echo "clang-format is missing; Debian: apt-get install clang-format"
    exit 1
fi
files=$(find src tests bench -name '*.[ch]' ! -path 'tests/data/*' 2>/dev/null | LC_ALL=C sort)
[ -n "$files" ] || { echo "no C file found below $root"; exit 1; }
# Strings are blanked first, so that "/*" in a string does not begin a comment.
limit=$(sed -n 's/^ColumnLimit: *//p' .clang-format)
wide=$(LC_ALL=C awk -v limit="${limit:-100}" '
    FNR == 1 { inside = off = 0 }
    /clang-format off/ { off = 1 }
    /clang-format on/ { off = 0 }
    {
        line = text = $0; comment = inside
        gsub(/[\200-\277]/, "", text) # a character of several bytes is one column
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        while (1) {
            if (inside) {
                if (!(end = index(line, "*/"))) break
                line = substr(line, end + 2); inside = 0
            }
            start = index(line, "/*")
            if ((rest = index(line, "//")) && (!start || rest < start)) { comment = 1; break }
            if (!start) break
            line = substr(line, start + 2); inside = comment = 1
        }
        if (comment && !off && length(text) > limit)
            print FILENAME ":" FNR ": comment of " length(text) " columns; " limit " are the limit"
    }' $files)
out=$(clang-format --dry-run -Werror --style=file $files 2>&1) && [ -z "$wide" ] && exit 0
[ -z "$wide" ] || printf '%s\n' "$wide"
printf '%s\n' "$out" | sed -n 's/^\([^: ]*:[0-9]*\):.*error:/\1:/p' | head -40
printf '%s\n' "$out" | sed -n 's/^\([^: ]*\):[0-9]*:.*error:.*/\1/p' | uniq -c | sed 's/^ *//;s/$/ (places)/'
printf '%s\n' "$out" | grep -q 'error:' || printf '%s\n' "$out"
exit 1
