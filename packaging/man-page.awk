# man-page.awk: a manual page out of what the program itself prints, so that both say the same.
#
#     ipw-agent COMMAND --help=all | awk -v command=COMMAND -v version=V -v date=D -v about=TEXT -f man-page.awk
#     ipw-agent --help | awk -v version=V -v date=D -v readme=README.md -f man-page.awk
#
# The form of the help (app/options.c): the usage line; text; titles, each followed by its rows with
# two blanks before them; text again.  The page of the program itself takes the tables of some of
# README.md's sections.  Written for man's own macros, man(7).

function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^[.']/) text = "\\&" text
    return text
}

# Markdown's marks go; a link keeps its text.
function plain(text) {
    gsub(/`|\*\*/, "", text)
    while (match(text, /\[[^]]*\]\([^)]*\)/)) {
        whole = substr(text, RSTART, RLENGTH)
        kept = whole
        sub(/^\[/, "", kept)
        sub(/\].*/, "", kept)
        text = substr(text, 1, RSTART - 1) kept substr(text, RSTART + RLENGTH)
    }
    gsub(/^ +| +$/, "", text)
    return text
}

function section_of_readme(title,    line, cells, on, rows) {
    while ((getline line < readme) > 0) {
        if (line ~ /^## /) {
            on = line == "## " title
            if (on) print ".SH " toupper(title)
            continue
        }
        if (!on || line !~ /^\|/) continue
        if (++rows < 3) continue # the table's head
        gsub(/^\| *| *\|$/, "", line)
        split(line, cells, / *\| */)
        printf ".TP\n.B %s\n%s\n", escaped(plain(cells[1])), escaped(plain(cells[2]))
    }
    close(readme)
    if (!rows) {
        print "man-page.awk: " readme ": no table in the section \"" title "\"" > "/dev/stderr"
        exit 1
    }
}

function flush_row() {
    if (left != "") printf ".TP\n%s\n%s\n", left, escaped(right)
    left = right = ""
}

# "-n, --limit N|A-B" in bold but for the value's name.
function option_row(line,    name, value, cut) {
    flush_row()
    sub(/^ +/, "", line)
    if (match(line, /  +/) && RSTART > 1) {
        right = substr(line, RSTART + RLENGTH)
        line = substr(line, 1, RSTART - 1)
    }
    match(line, /--[a-z0-9-]+/)
    cut = RSTART + RLENGTH
    name = escaped(substr(line, 1, cut - 1))
    value = escaped(substr(line, cut + 1))
    left = "\\fB" name "\\fR" (value == "" ? "" : " \\fI" value "\\fR")
}

NR == 1 {
    page = command == "" ? "ipw-agent" : "ipw-agent-" command
    printf ".TH %s 1 \"%s\" \"ipw-agent %s\" \"User Commands\"\n", toupper(escaped(page)), date, version
    sub(/^usage: /, "")
    usage = $0
    next
}
NR == 2 { next }
NR == 3 {
    if (about == "") {
        about = $0
        sub(/\.$/, "", about)
        about = tolower(substr(about, 1, 1)) substr(about, 2)
    }
    printf ".SH NAME\n%s \\- %s\n", escaped(page), escaped(about)
    printf ".SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n", escaped(usage)
}
# A line that may be a title waits for the next one: a title stands above a row.
function text(line) {
    if (listed && !said) {
        print ".SH NOTES"
        said = 1
    } else if (blank) {
        print ".PP"
    }
    blank = 0
    if (line ~ /^ /)
        print ".nf\n" escaped(line) "\n.fi"
    else
        print escaped(line)
}

function settle(is_row) {
    if (waiting == "") return
    if (is_row)
        print ".SH " toupper(escaped(waiting))
    else
        text(waiting)
    waiting = ""
}

/^ +(-., )?--[a-z]/ && !said {
    settle(1)
    option_row($0)
    listed = 1
    next
}
/^  [a-z]+ +[a-z]/ && command == "" {
    settle(1)
    flush_row()
    split($0, word, " ")
    left = "\\fBipw\\-agent\\-" word[1] "\\fR(1)"
    right = $0
    sub(/^  [a-z]+ +/, "", right)
    listed = 1
    next
}
left != "" && /^          / { sub(/^ +/, ""); right = right (right == "" ? "" : " ") $0; next }
{
    settle(0)
    flush_row()
}
/^$/ {
    blank = 1
    next
}
/^[A-Z]/ && blank {
    waiting = $0
    next
}
{ text($0) }
END {
    settle(0)
    flush_row()
    if (command == "") {
        section_of_readme("Exit status")
        section_of_readme("Run folder")
        section_of_readme("Environment")
        print ".SH FILES\n.TP\n.I PREFIX/share/ipw\\-agent"
        print "Agents, datasets, Lua modules, prices and the page of reports. An edited copy replaces the built\\-in file."
        print ".TP\n.I ~/.local/share/ipw\\-agent"
        print "Your own agents, tools, datasets, formats, and modules in lua/. They come before the program's."
        exit
    }
    print ".SH SEE ALSO\n.BR ipw\\-agent (1)"
}
