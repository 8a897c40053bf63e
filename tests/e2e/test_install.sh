# cmake --install into a folder with a blank in its name: the program runs from there and reads what was
# edited in its share/, a file of the user's comes before it, copies of another build are not read, and
# uninstall leaves what was not ours.
. "$(dirname "$0")/lib.sh"
command -v cmake >/dev/null || skip "no cmake"
BUILT=$IPW_AGENT MANIFEST=$WORK/install_manifest.txt # the build folder's own stays as it is
cp "$IPW_BINARY_DIR/install_manifest.txt" earlier 2>/dev/null

step "install"
cmake --install "$IPW_BINARY_DIR" --prefix "$WORK/opt dir" >out 2>&1 || fail "install"
mv "$IPW_BINARY_DIR/install_manifest.txt" "$MANIFEST"
[ ! -f earlier ] || cp earlier "$IPW_BINARY_DIR/install_manifest.txt"
IPW_AGENT="$WORK/opt dir/bin/ipw-agent"
expect_exit 0 agent run react --dataset gaia-sample --limit 1 --model demo -o run
assert_json run/manifest.json 'd["config"]["agent_file"] == "builtin:agents/react.lua"'

step "an edited copy is what the program reads, from a moved prefix too, and the manifest says so"
mv "$WORK/opt dir" "$WORK/moved dir"
IPW_AGENT="$WORK/moved dir/bin/ipw-agent" SHARE="$WORK/moved dir/share/ipw-agent"
demo() { # DIR CODE: a run of the installed program.
    expect_exit $2 agent run react --dataset gaia-sample --limit 1 --model demo -o "$1"
}
cp -r "$SHARE" kept
echo '-- edited' >>"$SHARE/agents/react.lua"
demo edited 0
assert_json edited/manifest.json 'd["config"]["agent_file"] == "'"$SHARE"'/agents/react.lua"'
assert_json edited/manifest.json 'd["config"]["agent_sha256"] == "'"$(sha256sum <"$SHARE/agents/react.lua" | cut -c1-64)"'"'
assert_json edited/manifest.json '[s["path"] for s in d["config"]["scripts"]] == ["'"$SHARE"'/agents/react.lua"]'
expect_exit 0 agent replay edited
sed -i '1i error("an edited agent")' "$SHARE/agents/react.lua"
demo agent 3
check_err "an edited agent"
cp kept/agents/react.lua "$SHARE/agents/react.lua"
sed -i '1i error("an edited module")' "$SHARE/lua/ipw/tools.lua"
demo module 3
check_err "an edited module"
cp kept/lua/ipw/tools.lua "$SHARE/lua/ipw/tools.lua"
sed -i '1s/"Question": *"[^"]*"/"Question": "An edited question"/' "$SHARE/datasets/gaia-sample/metadata.jsonl"
sed -i 's/<title>/<title>An edited page: /' "$SHARE/lua/ipw/report/page.html"
demo data 0
assert_contains data/traces.jsonl "An edited question"
assert_json data/manifest.json '[s["path"] for s in d["config"]["scripts"]] == ["'"$SHARE"'/datasets/gaia-sample/metadata.jsonl"]'
expect_exit 0 agent report data -o page.html
assert_contains page.html "<title>An edited page: "
cp "$SHARE/agents/react.lua" "$SHARE/agents/added.lua"
expect_exit 0 agent list agents
check_out added

step "what everybody can write, and copies of another build, are not read, and it says so"
chmod o+w "$SHARE/lua/ipw/report/page.html"
expect_exit 0 agent report data -o second.html
check_err "page.html: not used: "
assert_lacks second.html "<title>An edited page: "
echo "0.0.9 abc" >"$SHARE/stamp"
demo other 0
check_err "share/ipw-agent: these files belong to another build (0.0.9)"
assert_json other/manifest.json 'd["config"]["agent_file"] == "builtin:agents/react.lua" and d["config"]["scripts"] == []'
expect_exit 0 agent --version
check_words "ipw-agent 0.1.0"

step "the user's own folder comes first"
rm -r "$SHARE"
cp -r kept "$SHARE"
mkdir -p "$XDG_DATA_HOME/ipw-agent/agents"
echo 'error "mine comes first"' >"$XDG_DATA_HOME/ipw-agent/agents/react.lua"
demo mine 3
check_err "mine comes first"
rm -r "$XDG_DATA_HOME/ipw-agent"

step "installed into ~/.local, where the user's folder is too: copies are the program's, other files the user's"
XDG_DATA_HOME="$WORK/moved dir/share"
demo local 0
assert_json local/manifest.json 'd["config"]["agent_file"] == "builtin:agents/react.lua" and d["config"]["scripts"] == []'
echo "0.0.9 abc" >"$SHARE/stamp"
echo 'error "stale"' >"$SHARE/agents/react.lua"
echo 'error "the own agent of the user"' >"$SHARE/agents/own.lua"
IPW_AGENT=$BUILT demo stale 0
check_err "share/ipw-agent: these files belong to another build (0.0.9)"
IPW_AGENT=$BUILT expect_exit 3 agent run own --dataset gaia-sample --limit 1 --model demo -o own
check_err "the own agent of the user"
rm "$SHARE/agents/own.lua"
mv "$WORK/moved dir" "$WORK/opt dir"

step "uninstall"
: >"$WORK/opt dir/share/other"
: >"$WORK/opt dir/share/ipw-agent/agents/mine.lua"
cmake -DMANIFEST="$MANIFEST" -P "$IPW_SOURCE_DIR/cmake/uninstall.cmake" >out 2>&1 || fail "uninstall"
assert_eq "$(cd "$WORK/opt dir" && find . -type f | sort | tr '\n' ' ')" "./share/ipw-agent/agents/mine.lua ./share/other "
[ ! -e "$WORK/opt dir/share/ipw-agent/lua" ] || fail "an empty folder is left"
cmake -DMANIFEST="$MANIFEST" -P "$IPW_SOURCE_DIR/cmake/uninstall.cmake" >out 2>&1 && fail "uninstalled twice"
check_out "nothing was installed"

IPW_AGENT=$BUILT
end_test
