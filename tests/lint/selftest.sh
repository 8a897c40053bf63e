#!/bin/sh
# tests/lint/selftest.sh: every lint passes a small clean tree and fails, with the place and the
# reason, on a copy of it that breaks one rule.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ipw-lint.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
failed=0
cases=0

header() { # FLOOR NAME [BODY]
    mkdir -p "$tree/src/$1"
    guard=$(echo "IPW_$1_$2_H" | tr a-z A-Z)
    printf '/* %s/%s.h: owns something, and says here in a sentence how it is to be used. */\n' \
        "$1" "$2" >"$tree/src/$1/$2.h"
    printf '#ifndef %s\n#define %s\n%s\n#endif\n' "$guard" "$guard" "${3-}" >>"$tree/src/$1/$2.h"
}

source_file() { # PATH TEXT
    mkdir -p "$(dirname "$tree/$1")"
    printf '%s\n' "$2" >"$tree/$1"
}

fresh() {
    rm -rf "$tmp/tree"
    tree=$tmp/tree
    mkdir -p "$tree/agents" "$tree/tests" "$tree/bench"
    cp "$here/../../.clang-format" "$here/../../.luacheckrc" "$tree/"
    for floor in base json io energy data trace ledger llm script export report audit run serve replay telemetry app; do
        header $floor thing
    done
    source_file src/base/thing.c '#include "base/thing.h"

/* printf("in a comment") */
const char *thing(void);
const char *thing(void) { return "printf(\"in a string\")"; }'
    source_file src/json/read.c '#include <cjson/cJSON.h>

#include "base/thing.h"
#include "json/thing.h"'
    source_file src/io/http.c '#include <curl/curl.h>
#include <unistd.h>
#include <uv.h>

#include "base/thing.h"'
    source_file src/energy/sources/nvml.c '#include "energy/thing.h"
#include "json/thing.h"'
    source_file src/io/serve.c '#include <microhttpd.h>'
    source_file src/app/run.c '#include <stdio.h>

#include "export/thing.h"
#include "report/thing.h"
#include "script/thing.h"

void say(void);
void say(void) { printf("allowed here\n"); }'
    source_file agents/a.lua 'return { name = "a", run = function(query, cfg) return query.prompt end }'
}

lint() {
    case $1 in
    circles | structs) python3 "$here/$1.py" "$tree" ;;
    headers_alone | format | luacheck) sh "$here/$1.sh" "$tree" ;;
    *) sh "$here/lint.sh" "$1" "$tree" ;;
    esac
}

passes() { # CHECK
    cases=$((cases + 1))
    out=$(lint "$1" 2>&1) && [ -z "$(echo "$out" | grep ':[0-9]*: ')" ] && return
    echo "NOT PASSED: $1 on a clean tree: $out"
    failed=1
}

breaks() { # CHECK EXPECTED-IN-OUTPUT
    cases=$((cases + 1))
    if out=$(lint "$1" 2>&1); then
        echo "NOT NOTICED: $1 should have said: $2"
        failed=1
    elif ! printf '%s' "$out" | grep -qF -- "$2"; then
        echo "WRONG WORDS: $1 should have said: $2; it said: $out"
        failed=1
    fi
    fresh
}

fresh
for check in includes libraries headers length markers prints times cases faults citations words circles structs headers_alone format luacheck; do
    passes $check
done

# includes
source_file src/base/up.c '#include "io/thing.h"'
breaks includes 'src/base/up.c:1: base includes upward: io/thing.h'
source_file src/io/side.c '
#include "json/thing.h"'
breaks includes 'src/io/side.c:2: io and json do not see each other: json/thing.h'
source_file src/io/side.c '#include "energy/thing.h"'
breaks includes 'io includes upward: energy/thing.h'
source_file src/energy/sources/side.c '#include "io/thing.h"'
breaks includes 'src/energy/sources/side.c:1: energy and io do not see each other: io/thing.h'
source_file src/trace/up.h '#  include  "llm/thing.h"'
breaks includes 'src/trace/up.h:1: trace includes upward: llm/thing.h'
source_file src/export/side.c '#include "report/thing.h"'
breaks includes 'export and report do not see each other'
source_file src/report/side.c '#include "export/thing.h"'
breaks includes 'report and export do not see each other'
source_file src/script/up.c '#include "app/thing.h"'
breaks includes 'script includes upward: app/thing.h'
source_file src/llm/rel.c '#include "../script/thing.h"'
breaks includes 'include by floor, not by ..: ../script/thing.h'
source_file src/llm/angle.c '#include <script/thing.h>'
breaks includes 'own headers are included with quotes: script/thing.h'
header cellar thing
source_file src/cellar/a.c '#include "base/thing.h"'
breaks includes 'src/cellar is no floor'

# circles
header io a '#include "io/b.h"'
header io b '#include "io/c.h"'
source_file src/io/c.h '/* io/c.h: owns something, and is included by its neighbour. */'
source_file src/io/c.c '#include "io/a.h"
#include "io/c.h"'
breaks circles 'src/io: circle: io/a -> io/b -> io/c -> io/a'
header io a '#include "io/thing.h"'
header io a_priv '#include "io/a.h"'
source_file src/io/a.c '#include "io/a_priv.h"'
source_file src/io/a_part.c '#include "io/a_priv.h"'
passes circles
fresh
header run/sub a '#include "run/b.h"'
source_file src/run/b.h '/* run/b.h: owns something, and its source knows a neighbour. */'
source_file src/run/b.c '#include "run/sub/a.h"'
breaks circles 'src/run: circle: run/b -> run/sub/a -> run/b'

# structs
many=$(for i in $(seq 1 19); do echo "    int a$i, b$i;"; done)
header trace long "struct long {
    /* one more, and a method: */
    int (*fn)(int x, int y);
$many
};"
passes structs
header trace long "struct long {
    union {
        int x, y[2];
    };
$many
};"
breaks structs 'src/trace/long.h:4: struct long: 40 members; 39 are the most'

# libraries
source_file src/llm/c.c '#include <cjson/cJSON.h>'
breaks libraries 'src/llm/c.c:1: only json/ includes cjson/cJSON.h'
source_file src/io/loop.c '#include <curl/curl.h>'
breaks libraries 'only io/http* includes curl/curl.h'
source_file src/app/x.c '#include <uv.h>'
breaks libraries 'only io/ includes uv.h'
source_file src/app/x.c '#include <lua.h>'
breaks libraries 'only script/ includes lua.h'
source_file src/app/x.c '#include <lauxlib.h>'
breaks libraries 'only script/ includes lauxlib.h'
source_file src/report/x.c '#include <microhttpd.h>'
breaks libraries 'only io/ includes microhttpd.h'
source_file src/llm/x.c '#include <unicase.h>'
breaks libraries 'only data/ includes unicase.h'

# headers
source_file src/io/bare.h '#ifndef X
#define X
#endif'
breaks headers 'src/io/bare.h:1: does not open with "/* io/bare.h:'
source_file src/io/wrong.h '/* io/other.h: a paragraph that was copied and not changed at all, long as it is. */'
breaks headers 'src/io/wrong.h:1: does not open'
source_file src/io/terse.h '/* io/terse.h: it. */'
breaks headers 'src/io/terse.h:1: the opening says too little'

# length
source_file src/io/long.c "$(seq 901 | sed 's|.*|/* & */|')"
breaks length 'src/io/long.c:901: 901 lines'
source_file agents/long.lua "$(seq 950 | sed 's|.*|-- &|')"
breaks length 'agents/long.lua:901: 950 lines'

# markers (in two parts: the lint reads this file too)
source_file src/io/m.c "/* TO""DO: later */"
breaks markers "src/io/m.c:1: TO""DO"
source_file agents/m.lua "-- FIX""ME"
breaks markers "agents/m.lua:1: FIX""ME"
source_file bench/m.c "/* XX""X */"
breaks markers "bench/m.c:1: XX""X"

# prints
source_file src/llm/p.c '
void f(void) { printf("x"); }'
breaks prints 'src/llm/p.c:2: writes to the terminal'
source_file src/trace/p.c 'void f(void) { fprintf(stderr, "x"); }'
breaks prints 'src/trace/p.c:1: writes to the terminal'
source_file src/io/p.c 'void f(void) { fputs("a /* b", stderr); }'
breaks prints 'src/io/p.c:1: writes to the terminal'
source_file src/io/p.c '/* a
 * b */ void f(void) { write(2, "x", 1); }'
breaks prints 'src/io/p.c:2: writes to the terminal'

# times
source_file tests/e2e/t.sh 'start=$(date +%s)'
breaks times 'tests/e2e/t.sh:1: holds a time below a limit'
source_file tests/unit/a/t.c 'assert_true(ipw_now_ns() - began < S(5));'
breaks times 'tests/unit/a/t.c:1: holds'
source_file tests/e2e/t.sh "assert_json run/traces.jsonl 'd[0][\"wall_clock_s\"] < 3'"
breaks times 'tests/e2e/t.sh:1: holds'

# cases
case_tree() {
    mkdir -p "$tree/tests/unit/a"
    for n in $(seq -w 1 53); do echo "$n It holds."; echo "    unit/a/t.c:test_$n"; done >"$tree/tests/cases.txt"
    for n in $(seq -w 1 53); do
        echo "static void test_$n(void **state)"
        echo "unit_test(test_$n),"
    done >"$tree/tests/unit/a/t.c"
}
case_tree
passes cases
sed -i '/^07 /d; /test_07$/d' "$tree/tests/cases.txt"
breaks cases 'tests/cases.txt:1: nothing says what 07 holds'
case_tree
sed -i '/test_07$/d' "$tree/tests/cases.txt"
breaks cases 'tests/cases.txt:1: no test of 07'
case_tree
printf '07 It holds.\n    unit/a/t.c:test_08\n' >>"$tree/tests/cases.txt"
breaks cases 'tests/cases.txt:07: test_08 does not carry the number 07'
case_tree
printf '07 It holds.\n    unit/a/t.c:test_07_b\n' >>"$tree/tests/cases.txt"
breaks cases 'tests/cases.txt:07: no test_07_b in tests/unit/a/t.c'
case_tree
sed -i '/unit_test(test_09)/d' "$tree/tests/unit/a/t.c"
breaks cases 'tests/cases.txt:09: test_09 is not run'

# faults
fault_tree() {
    mkdir -p "$tree/tests/e2e"
    rows="$(seq -f D-%g 18) $(seq -f P-%g 16) $(seq -f N-%g 14) $(seq -f L-%g 9)
        J-1 J-2 J-5 J-6 J-7 J-8 M-2 $(seq -f S-%g 11)"
    for row in $rows; do printf '%s It holds.\n    e2e/t.sh\n' "$row"; done >"$tree/tests/faults.txt"
    for row in $rows; do echo "$row: held"; done >"$tree/tests/e2e/t.sh"
}
fault_tree
passes faults
sed -i '/^D-7 /d' "$tree/tests/faults.txt"
breaks faults 'tests/faults.txt:1: nothing says what D-7 holds'
fault_tree
sed -i '/^D-1:/d' "$tree/tests/e2e/t.sh" # D-11 is none
breaks faults 'tests/faults.txt:1: tests/e2e/t.sh does not carry D-1'
fault_tree
printf 'S-6 It holds.\n    e2e/gone.sh\n' >>"$tree/tests/faults.txt"
breaks faults 'tests/faults.txt:1: tests/e2e/gone.sh does not carry S-6'

# words
word_tree() {
    mkdir -p "$tree/tests/lint" "$tree/docs"
    printf '# a comment\n(goes|go) on with\tcontinue\n' >"$tree/tests/lint/retired_words.txt"
    source_file src/base/w.c '/* "go on with" in a comment */
const char *w = "one word";'
}
word_tree
passes words
word_tree
source_file src/base/w.c 'const char *w = "it goes on with it";'
breaks words "src/base/w.c:1: '(goes|go) on with' is retired; say: continue"
word_tree
echo 'Then go on with it.' >"$tree/docs/page.md"
breaks words "docs/page.md:1: '(goes|go) on with' is retired; say: continue"

# citations
source_file src/io/c.c '/* The rule: reference/energy.md 2b. */'
breaks citations 'src/io/c.c:1: cites reference/energy.md, which is not in the repository'
source_file src/io/c.c '/* One line, and the
 * other (docs/gone.md). */'
breaks citations 'src/io/c.c:2: cites docs/gone.md, which is not in the repository'
mkdir -p "$tree/docs"
source_file docs/page.md '# Page

## Bounds of it'
source_file src/io/c.c '/* See docs/page.md, "Bounds
 * of it", and docs/page.md. */'
passes citations
source_file docs/page.md '## Limits'
breaks citations 'src/io/c.c:1: docs/page.md has no section "Bounds of it"'

# pictures
picture_tree() {
    source_file docs/img/bar.png 'x'
    source_file docs/img/plot-new.svg 'x'
    source_file docs/page.md '![A bar](img/bar.png) and ![new](img/plot-new.svg)'
    source_file lua/ipw/plot/new.lua 'return {}'
}
picture_tree
passes pictures
rm "$tree/docs/img/bar.png"
breaks pictures 'docs/page.md:1: shows docs/img/bar.png, which is not in the repository'
picture_tree
source_file docs/img/old.png 'x'
breaks pictures 'docs/img/old.png:1: no page shows it'
picture_tree
source_file lua/ipw/plot/other.lua 'return {}'
breaks pictures 'lua/ipw/plot/other.lua:1: has no picture docs/img/plot-other.svg'

# headers compile alone
header io needs 'struct b { struct a a; };'
breaks headers_alone 'src/io/needs.h: does not compile alone'
header io twice 'struct a { int i; };'
sed -i '/^#/d' "$tree/src/io/twice.h"
breaks headers_alone 'src/io/twice.h: does not compile alone'

# format, Lua
source_file src/io/f.c 'int   f( void ){return 1;}'
breaks format 'src/io/f.c:1'
words='a comment whose line is a little too long for a reader who keeps two files side by side'
source_file src/io/f.c "/* short
 * $words, $words */
int f;"
breaks format 'src/io/f.c:2: comment of'
source_file src/io/f.c "int f; // $words, $words"
breaks format 'src/io/f.c:1: comment of'
source_file src/io/f.c "/* clang-format off */
/* $words, $words */
/* clang-format on */"
passes format
source_file agents/g.lua 'answer = 42
return {}'
breaks luacheck 'answer'
source_file agents/g.lua 'return { f = io.open }'
breaks luacheck 'io'
source_file agents/g.lua 'return {'
breaks luacheck 'agents/g.lua'

[ $failed -eq 0 ] && echo "$cases cases of lint ok"
exit $failed
