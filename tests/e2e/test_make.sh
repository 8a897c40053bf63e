# Making things: new, check, tool, test and repl; as a new user would, and with everything wrong.
. "$(dirname "$0")/lib.sh"

step "from nothing to a run that uses the new tool, in three commands"
cat >script.llm <<'EOF'
unless "role":"tool"
call shout {"word":"hello"}
---
when hello hello
text hello hello
EOF
start_fake --script script.llm
printf '{"question":"Say hello twice.","answer":"hello hello"}\n' >questions.jsonl
expect_exit 0 agent new tool shout
check_out "wrote tools/shout.lua and tools/shout_test.lua"
check_out "ipw-agent test tools/shout_test.lua"
expect_exit 0 agent test tools/shout_test.lua
check_out "3 passed, 0 failed"
expect_exit 0 agent run agents/tools.lua --tools shout --dataset questions.jsonl --model fake-model \
    --base-url "$BASE_URL" --output used
assert_json used/traces.jsonl "d[0]['turns'][0]['tools_called'] == ['shout'] and d[0]['is_resolved'] is True"

step "README's run uses it with the demo model; the second word of run is the data set"
echo '{"question":"shout hello","answer":"hello hello"}' >words.jsonl
expect_exit 0 agent run tools words.jsonl --tools +,shout --model demo --output readme
assert_json readme/traces.jsonl "d[0]['turns'][0]['tools_called'] == ['shout'] and d[0]['is_resolved'] is True"
rm readme/summary.json
sed -i '$d' readme/traces.jsonl
expect_exit 0 agent resume readme
assert_file_lines readme/traces.jsonl 1
expect_exit 2 agent run tools words.jsonl --dataset questions.jsonl
check_err "two datasets: words.jsonl and --dataset questions.jsonl"
damaged readme

step "every template is right as it is, checked and tested from anywhere"
for kind in tool agent dataset export; do
    expect_exit 0 agent new $kind fresh-$kind --output made
    check_out "wrote made/fresh-$kind.lua"
    expect_exit 0 agent check --kind $kind made/fresh-$kind.lua
    check_out "a good $kind, 'fresh-$kind'"
    expect_exit 0 agent test made/fresh-${kind}_test.lua
    check_out ", 0 failed"
done
start_fake --bench 1
expect_exit 0 agent run made/fresh-agent.lua --dataset made/fresh-dataset.lua --model fake-model \
    --base-url "$BASE_URL" --output both
assert_file_lines both/traces.jsonl 10

step "a command of one's own: in the help, with options, and with every mistake named"
mkdir own; cd own
expect_exit 0 agent new command dear
expect_exit 0 agent check commands/dear.lua
expect_exit 0 agent test commands/dear_test.lua
check_out "2 passed, 0 failed"
expect_exit 0 agent --help
check_out "dear       ./commands/dear.lua"
expect_exit 0 agent dear --help
check_out "--top N               how many (default: 3)"
expect_exit 2 agent dear r --topp 2
check_err "did you mean '--top'?"
expect_exit 2 agent dear r --top 0
expect_exit 2 agent dear
check_err "an argument is missing (usage: ipw-agent dear RUN [--top N])"
expect_exit 3 agent dear nothing-here
expect_exit 2 agent drae
printf 'return { usage = "bad", about = "b", options = { { "x", "integre", "N", "h" } }, run = print }\n' > commands/bad.lua
expect_exit 3 agent check commands/bad.lua
check_out "'integre' is no kind of option"
check_out "did you mean 'integer'?"
expect_exit 3 agent bad
check_err "'integre' is no kind of option"
printf 'return { usage = "bad", about = "b", option = {}, run = print }\n' > commands/bad.lua
expect_exit 3 agent bad
check_err "unknown field 'option' (did you mean 'options'?)"
printf 'return 1\n' > commands/bad.lua
expect_exit 3 agent bad
check_err "must return a table with a function"
printf 'return { usage = "bad", about = "b", run = function() error("oh") end }\n' > commands/bad.lua
expect_exit 3 agent bad
check_err "commands/bad.lua:1: oh"
cd ..

step "new: nothing is overwritten, names and kinds are checked"
echo mine >tools/kept.lua
expect_exit 1 agent new tool kept
check_err "tools/kept.lua already exists"
assert_eq "$(cat tools/kept.lua)" mine
[ ! -e tools/kept_test.lua ] || fail "half of it was written"
expect_exit 2 agent new tol x
offers tool
expect_exit 2 agent new tool ../evil
check_err "invalid name"
expect_exit 2 agent new tool
expect_exit 0 agent new --help

step "check: file, line and what was meant"
cat >tools/bad.lua <<'EOF'
helper = 5
return {
  name = "bad tool",
  about = "",
  inpt = {},
  input = {
    { "country", "strng", "What.", optinal = true },
    { "n", "integer", "N", default = "5", min = 3, max = 1 },
  },
  needs = { "prco" },
  rnu = function() end,
}
EOF
expect_exit 3 agent check tools/bad.lua
check_out "tools/bad.lua:1: sets the global 'helper': is 'local' missing?"
check_out "tools/bad.lua:3: name: expected letters"
check_out "tools/bad.lua:4: about: expected a sentence"
check_out "tools/bad.lua:5: unknown field 'inpt'"
check_out "(did you mean 'input'?)"
check_out "tools/bad.lua:7: input 'country': unknown type 'strng'"
check_out "(did you mean 'string'?)"
check_out "unknown option 'optinal'"
check_out "tools/bad.lua:8: input 'n': min is larger than max"
check_out "tools/bad.lua:8: input 'n': default: expected integer, got string"
check_out "tools/bad.lua:10: needs: unknown grant 'prco'"
check_out "tools/bad.lua:11: unknown field 'rnu'"
printf 'return {\n  name = "x"\n  about = "y",\n}\n' >tools/syntax.lua
expect_exit 3 agent check tools/syntax.lua
check_out "tools/syntax.lua:3: "
expect_exit 3 agent tool tools/syntax.lua '{}'
check_err "ipw-agent: tools/syntax.lua:3: "
echo 'local t = {}' >tools/nothing.lua
expect_exit 3 agent check tools/nothing.lua
check_out "is 'return' missing?"
expect_exit 3 agent check tools/missing.lua
check_err "tools/missing.lua"
mkdir -p agents datasets
echo 'return { run = function() end, defaults = { max_turns = 0, tools = { "calculatr" } } }' >agents/bad.lua
expect_exit 3 agent check agents/bad.lua
check_out "defaults.max_turns: expected a whole number"
check_out "no tool is named 'calculatr' (did you mean 'calculator'?)"
echo 'return { load = function() return { { id = 1, question = "a" }, { id = 1 } } end }' >datasets/bad.lua
printf '{"question":"What is 2 + 2?","answer":"4"}\n' >rows.jsonl
echo 'return require "ipw.dataset".open("rows.jsonl", { map = function() return { rule = "numeric" } end })' >datasets/mapped.lua
expect_exit 0 agent check datasets/mapped.lua
check_out "a good dataset, 'rows', 1 task"
expect_exit 3 agent check datasets/bad.lua
check_out "task 2: has no question"
check_out "the id '1' is also task 1's"
expect_exit 3 agent check tools/shout.lua tools/bad.lua
check_out "a good tool, 'shout'"
expect_exit 2 agent check --kind tol tools/shout.lua
offers tool
for agent in react tools single; do
    expect_exit 0 agent check "$IPW_SOURCE_DIR/agents/$agent.lua"
done
expect_exit 0 agent check "$IPW_SOURCE_DIR"/agents/tools/*.lua "$IPW_SOURCE_DIR/datasets/gaia.lua"

step "tool: one call by hand"
expect_exit 0 agent tool calculator '{"expression":"2 ** 10"}'
assert_eq "$(cat out)" 1024
expect_exit 1 agent tool calculator '{"expresion":"1"}'
check_err "'expression' is missing"
check_err "expression (string): "
expect_exit 1 agent tool calculator '{"expression":'
check_err "not valid JSON"
expect_exit 3 agent tool calculatr '{}'
check_err "did you mean 'calculator'?"
expect_exit 3 agent tool tools/bad.lua '{}'
mkdir space
echo "in the workspace" >space/a.txt
expect_exit 0 agent tool read_file '{"path":"a.txt"}' --workspace space
check_out "in the workspace"
expect_exit 0 agent tool shout '{"word":"hi"}'
assert_eq "$(cat out)" "hi hi"
expect_exit 3 agent tool python '{"code":"print(1)"}' --no-proc
check_err "--no-proc"

step "test: failures are told, and counted"
cat >some_test.lua <<'EOF'
local test = require "ipw.test"
test.it("passes", function() test.equal({ 1, { a = 2 } }, { 1, { a = 2 } }) end)
test.it("differs", function() test.equal({ 1 }, { 2 }, "the list") end)
test.it("raises", function() test.raises(function() error "boom" end, "boom") end)
test.it("waits", function() require("ipw").sleep(0.01) print("said") end)
test.it("asks nobody", function()
  local err = test.raises(function() require("ipw.llm").chat { messages = { { role = "user", content = "x" } } } end)
  test.matches(tostring(err), "there is no model")
end)
EOF
expect_exit 1 agent test some_test.lua
check_out "1..5"
check_out "not ok 2 - differs"
check_out "the list: expected [2], got [1]"
check_out "# said"
check_out "4 passed, 1 failed"
expect_exit 0 agent test some_test.lua --filter passes
check_out "1 passed, 0 failed"
expect_exit 3 agent test some_test.lua --filter "no such"
expect_exit 1 agent test missing_test.lua
check_err "missing_test.lua"
expect_exit 2 agent test

step "repl: lines, open lines, errors, the model, and a limit that it survives"
cat >lines <<'EOF'
1 + 1
for i = 1, 2 do
  print("line " .. i)
end
x = { b = 1, a = { 2 } }
x
error "boom"
nonsense(
)
{ 7,
8 }
llm.chat { messages = { llm.user "Hello" } }.text
? Say something
while true do end
x
"after " .. "that"
quit
"never"
EOF
printf 'text I am here.\n---\ntext I am here.\n' >here.llm
start_fake --script here.llm
"$IPW_AGENT" repl --model fake-model --base-url "$BASE_URL" <lines >out 2>err || fail "exit code $?"
check_out "2"
check_out "line 2"
check_out '{"a":[2],"b":1}'
check_out "[7,8]"
check_err "boom"
check_err "nonsense"
assert_eq "$(grep -c 'I am here.' out)" 2
check_err "restarted the Lua state; all variables are lost"
check_out "after that"
assert_lacks out never

step "help: of a command both ways round, and where wrong usage points"
expect_exit 0 agent help run
cp out helped
expect_exit 0 agent run --help
cmp -s out helped || fail "help run is not run --help"
# A terminal gets no word in two: each line of the options fits.
for command in run replay telemetry doctor; do
    on_terminal 80 agent $command --help
    sed -n '/^options:/,/^$/p' out | tail -n +2 >lines
    assert_fits lines 80
done
expect_exit 2 agent help rnu
offers run
expect_exit 2 agent cat agents/reakt.lua
offers agents/react.lua
expect_exit 2 agent list things
one_message
check_err "agents, tools, datasets, models, programs or sensors"
check_err "see ipw-agent list --help"
expect_exit 0 agent --help
check_out "sensors"

end_test
