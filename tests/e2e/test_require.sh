# Where modules, tools and agents are found, and what lets in Lua's own folders and C modules.
. "$(dirname "$0")/lib.sh"
unset LUA_PATH LUA_PATH_5_4 LUA_CPATH LUA_CPATH_5_4 LUA_INIT IPW_AGENT_PATH
start_fake --bench 1
printf '{"question":"Where?","answer":"42"}\n' >rows.jsonl
run_agent() { # FILE OUTPUT OPTIONS...: the answer is in $ANSWER
    file=$1 run=$2
    shift 2
    expect_exit 0 agent run "$file" --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output "$run" "$@"
    ANSWER=$(json "$run/traces.jsonl" "d[0]['response_text']")
}
refuse_agent() { # FILE OUTPUT WORD: the query fails, and its error holds WORD
    expect_exit 1 agent run "$1" --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --output "$2"
    assert_json "$2/traces.jsonl" "'$3' in d[0]['error']"
}
mkdir -p beside first second env home/data/ipw-agent/lua home/data/ipw-agent/tools
cat >beside/agent.lua <<'EOF'
return { name = "places", run = function() return require("spot").name .. " " .. require("deep.er") end }
EOF
for place in beside first second env home/data/ipw-agent/lua; do
    mkdir -p $place/deep/er
    echo "return { name = '$place' }" >$place/spot.lua
    echo "return 'deep in $place'" >$place/deep/er/init.lua
done
find_in() { # PLACE
    run_agent beside/agent.lua "out-$(echo "$1" | tr / _)" --path first --path second
    assert_eq "$ANSWER" "$1 deep in $1"
    rm -r "${1:?}"/spot.lua "$1"/deep
}
step "the order: beside the script, --path in its order, IPW_AGENT_PATH, the user's data folder"
export IPW_AGENT_PATH=nowhere:env
find_in beside
find_in first
find_in second
find_in env
find_in home/data/ipw-agent/lua
refuse_agent beside/agent.lua none "spot"
unset IPW_AGENT_PATH

step "tools by name in the same places; the current folder comes last"
tool() { # FILE
    mkdir -p "$(dirname "$1")"
    echo "return { name = 'where', about = 'Says where it is.', run = function() return '$1' end }" >"$1"
}
mkdir -p project/agents
cat >project/agents/asks.lua <<'EOF'
local tools = require "ipw.tools"
return { name = "asks", run = function()
  local kit <close> = tools.open { "where" }
  return (kit:invoke("where", {}))
end }
EOF
for spot in tools/where.lua home/data/ipw-agent/tools/where.lua env/tools/where.lua first/where.lua \
    project/tools/where.lua project/agents/where.lua; do
    tool "$spot"
    export IPW_AGENT_PATH=env
    run_agent project/agents/asks.lua "tool-$(echo "$spot" | tr / _)" --path first
    assert_eq "$ANSWER" "$spot"
done
unset IPW_AGENT_PATH
expect_exit 0 agent list tools --path first
assert_eq "$(grep -c '^where ' out)" 1
check_out "home/data/ipw-agent/tools/where.lua"
tool tools/calculator.lua
expect_exit 0 agent list tools
check_out "builtin:agents/tools/calculator.lua"

step "Lua's own folders only when the run allows them"
mkdir -p rocks
echo "return 'a rock'" >rocks/pebble.lua
echo 'return { name = "rocky", run = function() return require "pebble" end }' >rocky.lua
export LUA_PATH_5_4="$WORK/rocks/?.lua;;"
refuse_agent rocky.lua shut "--lua-path"
run_agent rocky.lua open --lua-path
assert_eq "$ANSWER" "a rock"
assert_json open/manifest.json "d['config']['lua_path'] is True and d['config']['allow_native'] is False"
unset LUA_PATH_5_4

step "L-7: a C module is refused without the flag, and recorded with it"
lpeg=$(find /usr/lib /usr/local/lib -path '*lua/5.4/lpeg.so' 2>/dev/null | head -n 1)
cjson=$(find /usr/lib /usr/local/lib -path '*lua/5.4/cjson.so' 2>/dev/null | head -n 1)
[ -n "$lpeg" ] && [ -n "$cjson" ] || skip "lua-lpeg and lua-cjson are not installed"
cat >native.lua <<'EOF'
return { name = "native", run = function()
  local lpeg, re, cjson = require "lpeg", require "re", require "cjson"
  local word = lpeg.C(lpeg.R("az") ^ 1)
  local list = cjson.decode('{"a":[1,2,{"b":"found"}]}')
  return word:match "hello world" .. " " .. re.match("k=v", "{%w+} '=' {%w+}") .. " " .. list.a[3].b
end }
EOF
refuse_agent native.lua refused "--allow-native"
run_agent native.lua allowed --allow-native
assert_eq "$ANSWER" "hello k found"
assert_json allowed/manifest.json "d['config']['allow_native'] is True"
assert_json allowed/events.jsonl "sorted(e['data']['module'] for e in d if e['event'] == 'note' and e['name'] == 'native_module') == ['cjson', 'lpeg']"

step "a shared object that is no module, or one for another Lua"
command -v gcc >/dev/null || skip "no compiler"
printf 'int nothing(void) { return 0; }\n' >nothing.c
printf 'void luaL_register(void); int luaopen_old(void *L) { luaL_register(); return 0; }\n' >old.c
gcc -shared -fPIC -o nothing.so nothing.c || fail "nothing.so"
gcc -shared -fPIC -o old.so old.c || fail "old.so"
export LUA_CPATH_5_4="$WORK/?.so"
for name in nothing old; do
    mkdir in-$name
    echo "return { name = 'bad', run = function() return require '$name' end }" >in-$name/agent.lua
    expect_exit 1 agent run in-$name/agent.lua --allow-native --dataset rows.jsonl \
        --base-url "$BASE_URL" --model fake-model --output bad-$name
done
assert_json bad-nothing/traces.jsonl "'luaopen_nothing' in d[0]['error']"
assert_json bad-old/traces.jsonl "'another Lua' in d[0]['error']"

step "D-17: a C module is on record by its hash, and a run with another one is not the same run"
build_own() { # NUMBER
    printf 'void lua_pushinteger(void *, long long); int luaopen_own(void *L) { lua_pushinteger(L, %s); return 1; }\n' \
        "$1" >own.c
    gcc -shared -fPIC -o own.new own.c || fail "own.so"
    mv own.new own.so # what is loaded is not written over
}
build_own 42
echo 'local llm, own = require "ipw.llm", require "own"
return { name = "owner", run = function() return llm.chat { messages = { llm.user("" .. own) } }.text end }' >owner.lua
GOOD_URL=$BASE_URL
printf 'always\nstatus 400\ntext no\n' >refuses.txt
start_fake --script refuses.txt
expect_exit 1 agent run owner.lua --allow-native --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --output owned
assert_json owned/manifest.json "{s['path']: s['sha256'] for s in d['config']['scripts']}['$WORK/own.so'] == '$(sha256sum own.so | cut -d ' ' -f 1)'"
build_own 43
expect_exit 3 agent resume owned --rerun failed --base-url "$GOOD_URL"
check_err "owned: cannot resume: the file $WORK/own.so, which it loads, was"
build_own 42
expect_exit 0 agent resume owned --rerun failed --base-url "$GOOD_URL"

end_test
