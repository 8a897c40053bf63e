# cmake --install into a folder with a blank in its name: the program runs from there, a file of the
# user's comes before a built-in one, and uninstall leaves what was not ours.
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

step "from a moved prefix it runs as well, and what lies beside it is not read"
mv "$WORK/opt dir" "$WORK/moved dir"
IPW_AGENT="$WORK/moved dir/bin/ipw-agent" SHARE="$WORK/moved dir/share/ipw-agent"
demo() { # DIR CODE: a run of the installed program.
    expect_exit $2 agent run react --dataset gaia-sample --limit 1 --model demo -o "$1"
}
mkdir "$SHARE/agents"
echo 'error "not mine"' >"$SHARE/agents/react.lua"
demo moved 0
assert_json moved/manifest.json 'd["config"]["agent_file"] == "builtin:agents/react.lua" and d["config"]["scripts"] == []'

step "the user's own folder comes first, also where the program is installed into ~/.local"
XDG_DATA_HOME="$WORK/moved dir/share"
demo mine 3
check_err "not mine"
expect_exit 0 agent list agents
check_out "$SHARE/agents/react.lua"
rm -r "$SHARE/agents"
demo local 0
assert_json local/manifest.json 'd["config"]["agent_file"] == "builtin:agents/react.lua" and d["config"]["scripts"] == []'
mv "$WORK/moved dir" "$WORK/opt dir"

step "uninstall"
: >"$WORK/opt dir/share/other"
mkdir "$WORK/opt dir/share/ipw-agent/agents"
: >"$WORK/opt dir/share/ipw-agent/agents/mine.lua"
cmake -DMANIFEST="$MANIFEST" -P "$IPW_SOURCE_DIR/cmake/uninstall.cmake" >out 2>&1 || fail "uninstall"
assert_eq "$(cd "$WORK/opt dir" && find . -type f | sort | tr '\n' ' ')" "./share/ipw-agent/agents/mine.lua ./share/other "
[ ! -e "$WORK/opt dir/share/ipw-agent/library" ] || fail "an empty folder is left"
cmake -DMANIFEST="$MANIFEST" -P "$IPW_SOURCE_DIR/cmake/uninstall.cmake" >out 2>&1 && fail "uninstalled twice"
check_out "nothing was installed"

IPW_AGENT=$BUILT
end_test
