# list and show: a row for each thing, on the screen, without a terminal, and as JSON; files that do not load.
. "$(dirname "$0")/lib.sh"

mkdir -p tools agents datasets
cat >tools/hello.lua <<'LUA'
return { name = "hello", about = "Says hello. To whom, it does not know.", run = function() return "hello" end }
LUA
echo 'return {' >agents/broken.lua
cat >datasets/mine.lua <<'LUA'
return { name = "mine", about = "Two of mine.", rule = "exact", load = function() return {} end }
LUA

step "agents and tools: name, what it does, path"
expect_exit 0 agent list tools
check_out "hello                Says hello.  ./tools/hello.lua"
check_out "think                Notes a thought, a plan or an intermediate result.  builtin:agents/tools/think.lua"
expect_exit 0 agent list agents
check_out "react                Thinks and calls tools in plain text until it reaches a final answer.  builtin:agents/react.lua"
check_out "broken               does not load: ipw-agent check ./agents/broken.lua  ./agents/broken.lua"
expect_exit 0 agent list agents --json
assert_json out '{r["name"]: r["path"] for r in d}["single"] == "builtin:agents/single.lua" and all(r["about"] for r in d)'
expect_exit 0 agent list tools --json
assert_json out '[r["about"] for r in d if r["name"] == "hello"] == ["Says hello. To whom, it does not know."]'

step "on a terminal no line is longer than it"
for kind in agents tools datasets sensors; do
    on_terminal 80 agent list $kind
    assert_fits out 80
done

step "datasets: a line a set, and all that is known of it as JSON"
expect_exit 0 agent list datasets
assert_eq "$(grep -c '^gsm8k ' out)" 1
check_out "gaia-sample          built in    gaia      22 tasks of our own in GAIA's form."
check_out "mine                 built in    exact     Two of mine. [./datasets/mine.lua]"
check_out "+ ipw-agent fetch NAME downloads it"
expect_exit 0 agent list datasets --json
assert_json out '[(r["state"], r["fetch"], r["scorer"]) for r in d if r["name"] == "gsm8k"] == [("not here", "ipw-agent fetch gsm8k", "numeric")]'
assert_json out 'all(r["gated"].startswith("https://") for r in d if r["name"] == "gaia")'

step "sensors: what was looked for, and those that are named"
expect_exit 0 agent list sensors --json
assert_json out 'all(r["text"] and isinstance(r["found"], bool) for r in d)'
assert_json out '[r["text"] for r in d if r["name"] == "stream="] == ["named: --telemetry stream=..."]'

step "cat: the names, and a file byte by byte"
expect_exit 0 agent cat
check_out agents/react.lua
expect_exit 0 agent cat agents/react.lua
cmp out "$IPW_SOURCE_DIR/agents/react.lua" || fail "another text"
expect_exit 2 agent cat agents/reakt.lua
one_message
end_test
