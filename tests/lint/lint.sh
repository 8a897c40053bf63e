#!/bin/sh
# tests/lint/lint.sh CHECK [ROOT]: house rules that no compiler looks after.  ROOT is the repository
# (the self-test gives it broken trees).  Prints "file:line: message" for each breach; exit 1 when
# there was one.
#
#   includes   includes go down only, from floor to floor of src/
#   libraries  each foreign library is seen by its own floor only
#   headers    every header in src/ opens with a paragraph "/* floor/name.h: ..."
#   length     no source file over 900 lines
#   markers    no leftover markers (to-do and the like)
#   cases      every case of tests/cases.txt says what holds, and has a test that carries its number
#   faults     every row of tests/faults.txt says what holds, and has a test that carries its id
#   citations  every page and section that is cited is in the repository
#   pictures   every picture that a page shows is there, each of docs/img is shown, and each kind of plot has one
#   words      help, messages and pages do not use the words of tests/lint/retired_words.txt
#   times      no test holds that something is done within a time: it would depend on the machine
#   prints     only app/, report/ and a few files of base/ and io/ write to the terminal
set -u
check=${1:?usage: lint.sh CHECK [ROOT]}
root=${2:-$(dirname "$0")/../..}
cd "$root" || exit 2
tab=$(printf '\t')
ids=$(mktemp "${TMPDIR:-/tmp}/ipw-ids.XXXXXX") || exit 2
trap 'rm -f "$ids"' EXIT

c_files() { find src -name '*.[ch]' 2>/dev/null | LC_ALL=C sort; }
all_files() {
    find src lua agents datasets tests bench scripts cmake packaging -type f \
        \( -name '*.[ch]' -o -name '*.lua' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' \
        -o -name CMakeLists.txt -o -path 'scripts/*' -o -path 'packaging/*' -o -path 'bench/run_*' \) \
        ! -path 'tests/data/*' 2>/dev/null | LC_ALL=C sort
}

# One process for all files, not one for each: a loaded machine is slow at starting them.

# Prints "file<TAB>line<TAB>what" of each include, with its quotes or brackets.
list_includes() {
    c_files | xargs -r awk '
        match($0, /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]*[>"]/) {
            inc = substr($0, 1, RLENGTH)
            sub(/^[ \t]*#[ \t]*include[ \t]*/, "", inc)
            print FILENAME "\t" FNR "\t" inc
        }'
}

check_includes() {
    list_includes | awk -F"$tab" '
    BEGIN {
        n = split("base json io energy data trace ledger llm script export report audit run serve replay proxy telemetry app",
                  floors, " ")
        for (i = 1; i <= n; i++) level[floors[i]] = i
        level["report"] = level["export"]       # side by side
        level["replay"] = level["serve"]
        level["telemetry"] = level["proxy"]
        apart["io json"] = apart["io energy"] = apart["energy io"] = 1
        apart["report export"] = apart["export report"] = 1
        apart["replay serve"] = apart["serve replay"] = apart["telemetry replay"] = apart["proxy replay"] = 1
    }
    {
        split($1, path, "/"); from = path[2]
        what = substr($3, 2, length($3) - 2)
        split(what, parts, "/"); to = parts[1]
        at = $1 ":" $2 ": "
        if (!(from in level)) { print at "src/" from " is no floor"; next }
        if (what ~ /\.\./) { print at "include by floor, not by ..: " what; next }
        if (!(to in level) || what !~ /\//) next
        if ($3 ~ /^</) { print at "own headers are included with quotes: " what; next }
        if (from == to) next
        if (level[to] > level[from]) print at from " includes upward: " what
        else if ((from " " to) in apart) print at from " and " to " do not see each other: " what
        else if (level[to] == level[from]) print at from " includes sideways: " what
    }'
}

check_libraries() {
    list_includes | awk -F"$tab" '
    function only(pattern, where, name) {
        if (what ~ pattern && $1 !~ where)
            print $1 ":" $2 ": only " name " includes " what
    }
    {
        what = substr($3, 2, length($3) - 2)
        only("(^|/)cJSON[^/]*\\.h$", "^src/json/", "json/")
        only("^curl/", "^src/io/http[^/]*$", "io/http*")
        only("^uv(/.*)?\\.h$|^uv/", "^src/io/", "io/")
        only("(^|/)(lua|lualib|lauxlib|luaconf)\\.h(pp)?$", "^src/script/", "script/")
        only("^gumbo\\.h$", "^src/data/html\\.c$", "data/html.c")
        only("^sqlite3\\.h$", "^src/data/db[^/]*\\.c$", "data/db*.c")
        only("^(zlib|snappy-c|zstd|lz4|lz4frame)\\.h$", "^src/data/(columnar/codec|inflate)\\.c$", "data/columnar/codec.c and data/inflate.c")
        only("^editline/", "^src/app/prompt\\.c$", "app/prompt.c")
        only("^microhttpd\\.h$", "^src/io/", "io/")
        only("^uniwidth\\.h$", "^src/base/text\\.c$", "base/text.c")
        only("^uni(case|norm|str|type|ctype)\\.h$", "^src/data/", "data/")
        only("(^nvml|/nvml_priv)\\.h$", "^src/energy/sources/nvml", "energy/sources/nvml*")
    }' | grep -v 'includes unistd\.h$'
}

check_headers() {
    find src -name '*.h' | LC_ALL=C sort | xargs -r awk '
        FNR == 1 {
            text = ""; seen = 0; name = substr(FILENAME, 5)
            if (index($0, "/* " name ":") != 1) {
                print FILENAME ":1: does not open with \"/* " name ": what it owns and how to use it\""
                seen = 1
            }
        }
        seen { next }
        # a name alone is no paragraph
        { text = text $0 }
        /\*\// { if (length(text) < 40) print FILENAME ":1: the opening says too little"; seen = 1 }'
}

check_length() {
    all_files | xargs -r awk '
        FNR == 901 { name = FILENAME; long[name] = 1 }
        FNR > 900 { lines[FILENAME] = FNR }
        END { for (name in long) print name ":901: " lines[name] " lines; 900 are the limit" }' | LC_ALL=C sort
}

check_markers() {
    # Written in two parts so that this file does not find itself.
    words="TO""DO|FIX""ME|XX""X|HA""CK"
    all_files | tr '\n' '\0' | xargs -0 grep -nwHoE -e "$words" /dev/null |
        sed 's/:\([A-Z]*\)$/: \1/'
}

# Comments and strings are blanked before the search.
check_prints() {
    c_files | grep -vE '^src/(app|report|audit|run|serve|replay|proxy|telemetry)/|^src/(base/(log|err|mem)|io/proc_helper)\.c$' | xargs -r awk '
        FNR == 1 { inside = 0 }
        {
            line = $0; out = ""
            while (line != "") {
                if (inside) {
                    end = index(line, "*/")
                    if (!end) break
                    line = substr(line, end + 2); inside = 0
                } else if (line ~ /^\/\*/) {
                    inside = 1; line = substr(line, 3)
                } else if (line ~ /^\/\//) {
                    break
                } else if (match(line, /^"([^"\\]|\\.)*"/)) {
                    out = out "\"\""; line = substr(line, RLENGTH + 1)
                } else if (match(line, /^\047([^\047\\]|\\.)*\047/)) {
                    out = out "0"; line = substr(line, RLENGTH + 1)
                } else {
                    out = out substr(line, 1, 1); line = substr(line, 2)
                }
            }
            if (out ~ /(^|[^A-Za-z0-9_])(v?printf|puts|putchar|perror)[ ]*\(/ ||
                out ~ /(^|[^A-Za-z0-9_])(f(printf|puts|putc|write)|vfprintf|putc)[ ]*\(.*std(out|err)/ ||
                out ~ /(^|[^A-Za-z0-9_])(v?dprintf|write)[ ]*\([ ]*(1|2|STD(OUT|ERR)_FILENO)[ ]*,/)
                print FILENAME ":" FNR ": writes to the terminal from here"
        }'
}

# Prints "ID TEST" of each test in a table of cases: a line "ID what holds", its tests indented below.
list_tests() {
    awk '/^#/ || /^$/ { next } /^ / { print id, $1; next } { id = $1 }' "$1"
}

# Each of the ids has a line that says what holds, and a test.
check_table() { # TABLE ID...
    table=$1
    shift
    list_tests $table | cut -d' ' -f1 | sort -u >"$ids"
    for id in "$@"; do
        grep -Eq "^$id .*[a-z]" $table || echo "$table:1: nothing says what $id holds"
        grep -qx "$id" "$ids" || echo "$table:1: no test of $id"
    done
}

# Strings of C (where the program's words stand), of Lua in agents/ and lua/, and the pages.
check_words() {
    list=tests/lint/retired_words.txt
    [ -f $list ] || return 0
    grep -v '^#' $list | while IFS="$tab" read -r words instead; do
        {
            grep -nE "$words" README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs/*.md /dev/null
            grep -rnE "\"[^\"]*($words)[^\"]*\"" src lua agents --include='*.c' --include='*.lua' |
                grep -vE ':[0-9]+: *(/\*|\*|--)'
        } 2>/dev/null | awk -F: -v words="$words" -v instead="$instead" \
            '{ print $1 ":" $2 ": \047" words "\047 is retired; say: " instead }'
    done
}

check_cases() {
    table=tests/cases.txt
    [ -f $table ] || return 0
    check_table $table $(seq -w 1 53)
    # Its numbers stand in a name with lines between: test_26_27_28_tools.
    list_tests $table | while read -r case test; do
        file=tests/${test%%:*} name=${test#*:}
        case $name in
        *_"$case"_* | *_"$case") ;;
        *) echo "$table:$case: $name does not carry the number $case" ;;
        esac
        case $file in
        *.lua)
            grep -qs "{ \"$name\", function()" "$file" || echo "$table:$case: no $name in $file"
            continue
            ;;
        esac
        grep -qs "^static void $name(" "$file" || echo "$table:$case: no $name in $file"
        grep -qs "[( ,]$name[),]" "$file" || echo "$table:$case: $name is not run"
    done
}

check_faults() {
    table=tests/faults.txt
    [ -f $table ] || return 0
    check_table $table $(seq -f D-%g 18) $(seq -f P-%g 16) $(seq -f N-%g 14) $(seq -f L-%g 9) \
        J-1 J-2 J-5 J-6 J-7 J-8 M-2 $(seq -f S-%g 11)
    list_tests $table | while read -r row test; do
        grep -Eqs "(^|[^A-Za-z0-9-])$row([^0-9]|\$)" "tests/$test" ||
            echo "$table:1: tests/$test does not carry $row"
    done
}

# A page that is named (docs/method.md, ARCHITECTURE.md) is in the repository, and so is the section
# that is named with it: docs/method.md, "Bounds".  A citation may go on in the next line.
check_citations() {
    { all_files; find docs -name '*.md' 2>/dev/null; ls ./*.md tests/*.txt 2>/dev/null | sed 's/^\.\///'; } |
        grep -v '^tests/lint/' | xargs -r awk '
        function headings(page,    line, found) {
            if (page in known) return known[page]
            found = 0
            while ((getline line <page) > 0) {
                found = 1
                if (sub(/^#+ +/, "", line)) section[page, line] = 1
            }
            close(page)
            return known[page] = found
        }
        function look(text, late,    at, page, rest, name) {
            while (match(text, /(reference|docs|bench)\/[a-z-]+\.md|(DESIGN|ARCHITECTURE|CONTRIBUTING|CHANGELOG)\.md/)) {
                at = RSTART
                page = substr(text, RSTART, RLENGTH)
                rest = substr(text, RSTART + RLENGTH)
                text = rest
                if (at > late) return
                if (!headings(page)) { print file ":" line_no ": cites " page ", which is not in the repository"; continue }
                if (!match(rest, /^(\]\([^)]*\))?,? "[^"]+"/)) continue
                name = substr(rest, RSTART, RLENGTH)
                sub(/^[^"]*"/, "", name)
                sub(/"$/, "", name)
                if (!((page, name) in section)) print file ":" line_no ": " page " has no section \"" name "\""
            }
        }
        FNR == 1 && NR > 1 { look(before, length(before)) }
        FNR == 1 { before = ""; file = FILENAME }
        {
            line = $0
            sub(/^[ \t]*(\*|#|--+|\/\*)?[ \t]*/, "", line)
            if (FNR > 1) { line_no = FNR - 1; look(before " " line, length(before)) }
            before = line; line_no = FNR
        }
        END { look(before, length(before)) }'
}

check_pictures() {
    for page in README.md docs/*.md docs/tutorials/*.md; do
        [ -f "$page" ] || continue
        grep -noE '!\[[^]]*\]\([^):]+\)' "$page" | while IFS= read -r shown; do
            file=${shown##*\](}
            file=$(dirname "$page")/${file%)}
            [ -f "$file" ] || echo "$page:${shown%%:*}: shows $file, which is not in the repository"
        done
    done
    for file in docs/img/*; do
        [ -f "$file" ] || continue
        grep -qF "img/${file##*/})" README.md docs/*.md /dev/null || echo "$file:1: no page shows it"
    done
    for kind in lua/ipw/plot/*.lua; do
        [ -f "$kind" ] || continue
        name=$(basename "$kind" .lua)
        [ -f "docs/img/plot-$name.svg" ] || echo "$kind:1: has no picture docs/img/plot-$name.svg (scripts/pictures)"
    done
}

# An elapsed time, or a length that a run recorded, below a limit.
check_times() {
    find tests/unit tests/lua tests/e2e 2>/dev/null -name '*.c' -o -name '*.lua' -o -name '*.sh' -o -name '*.py' | LC_ALL=C sort | tr '\n' '\0' |
        xargs -0 grep -nHE -e 'date \+%s' \
            -e '(assert|ok\(|fail).*(now_ns|now|time|clock|monotonic|perf_counter)\(\) *- *[a-zA-Z_.]+\)? *<' \
            -e '(wall_clock|inference|ttft|decode|duration|period|latency)_s[]"'\''\\]{0,3} *<=? *[0-9]' /dev/null |
        sed 's/^\([^:]*:[0-9]*\):.*/\1: holds a time below a limit/'
}

case $check in
times | includes | libraries | headers | length | markers | prints | cases | faults | citations | pictures | words) found=$(check_$check) ;;
*)
    echo "lint.sh: no check $check" >&2
    exit 2
    ;;
esac
[ -z "$found" ] && exit 0
printf '%s\n' "$found"
exit 1
