# cmake --install into a folder with a blank in its name: the program runs from there, a file of the
# user's comes before the ones inside it, and uninstall leaves what was not ours.
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

step "as the README says: the installed copies are to be read, the user's own folder comes first"
sed -i '1i error("X")' "$WORK/opt dir/share/doc/ipw-agent/agents/react.lua"
expect_exit 0 agent run react --dataset gaia-sample --limit 1 --model demo -o again
mkdir -p "$XDG_DATA_HOME/ipw-agent/agents"
echo 'error "mine comes first"' >"$XDG_DATA_HOME/ipw-agent/agents/react.lua"
expect_exit 3 agent run react --dataset gaia-sample --limit 1 --model demo -o mine
check_err "mine comes first"
rm -r "$XDG_DATA_HOME/ipw-agent"

step "installed into ~/.local, as the README does it, the copies do not come before the program's own"
IPW_AGENT=$BUILT XDG_DATA_HOME="$WORK/opt dir/share" expect_exit 0 agent run react --dataset gaia-sample --limit 1 --model demo -o local
assert_json local/manifest.json 'd["config"]["agent_file"] == "builtin:agents/react.lua"'

step "uninstall"
: >"$WORK/opt dir/share/other"
: >"$WORK/opt dir/share/doc/ipw-agent/agents/mine.lua"
cmake -DMANIFEST="$MANIFEST" -P "$IPW_SOURCE_DIR/cmake/uninstall.cmake" >out 2>&1 || fail "uninstall"
assert_eq "$(cd "$WORK/opt dir" && find . -type f | sort | tr '\n' ' ')" "./share/doc/ipw-agent/agents/mine.lua ./share/other "
[ ! -e "$WORK/opt dir/share/doc/ipw-agent/lua" ] || fail "an empty folder is left"
cmake -DMANIFEST="$MANIFEST" -P "$IPW_SOURCE_DIR/cmake/uninstall.cmake" >out 2>&1 && fail "uninstalled twice"
check_out "nothing was installed"

IPW_AGENT=$BUILT
end_test
