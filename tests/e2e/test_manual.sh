# The manual pages and the completions, as they are installed: no option of the help is missing in
# them, and the manual's own checker finds nothing to warn of.
. "$(dirname "$0")/lib.sh"
mkdir bin
ln -s "$IPW_AGENT" bin/ipw-agent
PATH="$WORK/bin:$PATH"
PACKAGING=$IPW_SOURCE_DIR/packaging

step "every command has a page, and the page every option"
"$PACKAGING/man-pages" ipw-agent man 2>err || fail "man-pages"
ipw-agent --help | sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p' >commands
[ "$(wc -l <commands)" -gt 20 ] || fail "commands of the help"
while read -r command; do
    page=man/ipw-agent-$command.1
    [ -f "$page" ] || fail "$command has no page"
    assert_contains man/ipw-agent.1 "ipw\\-agent\\-$command\\fR(1)"
    for option in $(ipw-agent "$command" --help=all | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p'); do
        tr -d "\\\\" <"$page" | grep -q -e "^fB.*$option"fR || fail "$page lacks $option"
    done
done <commands
assert_contains man/ipw-agent.1 "IPW_AGENT_PATH"
assert_contains man/ipw-agent.1 "replay diverged"
if command -v mandoc >/dev/null; then
    mandoc -Tlint -Wwarning man/*.1 >out 2>&1 || fail "mandoc warns"
fi

step "a help of another form is noticed"
echo "# none" >empty.md
ipw-agent --help | awk -v readme=empty.md -f "$PACKAGING/man-page.awk" >out 2>err && fail "a README without tables passed"
check_err "no table in the section"

step "completion"
expect_exit 0 ipw-agent run react --dataset gaia-sample --limit 2 --model demo -o runs/one
id=$(json runs/one/traces.jsonl 'd[0]["query_id"]')
short=$(echo "$id" | cut -c1-6)
cat >lines <<EOF
ipw-agent rep:replay
ipw-agent run --max-tu:--max-turns
ipw-agent run rea:react
ipw-agent run react --dataset gaia-s:gaia-sample
ipw-agent run react -d gsm:gsm8k
ipw-agent run react --tools calc:calculator
ipw-agent replay runs/o:runs/one
ipw-agent replay runs/one --query $short:$id
ipw-agent replay runs/one --from-divergence l:live
ipw-agent export runs/one --format openm:openmetrics
ipw-agent list sen:sensors
EOF
if command -v bash >/dev/null; then
    cat >complete.bash <<'EOF'
. "$1/completion/ipw-agent.bash"
while IFS=: read -r line wanted; do
    read -r -a COMP_WORDS <<<"$line"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _ipw_agent
    [[ " ${COMPREPLY[*]} " == *" $wanted "* ]] || echo "bash: $line: ${COMPREPLY[*]}, not $wanted"
done <lines
EOF
    bash complete.bash "$PACKAGING" >out 2>&1
    [ ! -s out ] || fail "completion for bash"
fi
if command -v fish >/dev/null; then
    while IFS=: read -r line wanted; do
        fish -c 'source $argv[1]; complete -C$argv[2]' "$PACKAGING/completion/ipw-agent.fish" "$line" 2>&1 |
            cut -f 1 | grep -qx -e "$wanted" || echo "fish: $line: not $wanted"
    done <lines >out
    [ ! -s out ] || fail "completion for fish"
fi
if command -v zsh >/dev/null; then
    cat >complete.zsh <<'EOF'
autoload -U +X bashcompinit && bashcompinit
autoload -U compinit && compinit -u -D
compdef() { :; }
source $1/completion/ipw-agent.bash
while IFS=: read -r line wanted; do
    COMP_WORDS=(${=line})
    COMP_CWORD=$((${#COMP_WORDS} - 1))
    () { emulate -L sh; setopt kshglob noshglob braceexpand ksharrays; _ipw_agent }
    [[ " $COMPREPLY " == *" $wanted "* ]] || echo "zsh: $line: $COMPREPLY, not $wanted"
done <lines
EOF
    zsh -f complete.zsh "$PACKAGING" >out 2>&1
    [ ! -s out ] || fail "completion for zsh"
fi
end_test
