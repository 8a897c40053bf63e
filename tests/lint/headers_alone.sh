#!/bin/sh
# tests/lint/headers_alone.sh [ROOT]: every header of src/ compiles alone, and twice in a row.
# CC names the compiler; the flags of the libraries come from pkg-config.
set -u
root=${1:-$(dirname "$0")/../..}
cd "$root" || exit 2
flags=$(pkg-config --cflags lua5.4 libcurl libcjson libuv libmicrohttpd) || exit 2
failed=0
count=0
for header in $(find src -name '*.h' | LC_ALL=C sort); do
    count=$((count + 1))
    printf '#include "%s"\n#include "%s"\n' "${header#src/}" "${header#src/}" |
        ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -DIPW_VERSION='"0"' -Wall -Wextra -Werror -Isrc $flags \
            -fsyntax-only -x c - || {
        echo "$header: does not compile alone"
        failed=1
    }
done
[ $count -gt 0 ] || { echo "no header found below $root/src"; exit 1; }
exit $failed
