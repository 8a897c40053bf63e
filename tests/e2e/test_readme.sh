# The README's Lua files, taken out of the README itself, work from an unrelated folder.
. "$(dirname "$0")/lib.sh"

# A snippet is the fenced block after a line "<!-- NAME -->".
mkdir -p elsewhere/tools
awk -v dir=elsewhere '
    /^<!-- .*\.lua -->$/ { name = $2; next }
    name && /^```lua$/   { out = dir "/" name; next }
    out && /^```$/       { close(out); out = name = ""; n++; next }
    out                  { print > out }
    END                  { exit n == 2 ? 0 : 1 }' "$IPW_SOURCE_DIR/README.md" || fail "two snippets expected"
[ -s elsewhere/mine.lua ] && [ -s elsewhere/tools/shout.lua ] || fail "snippets missing"

cat >questions.jsonl <<'EOF'
{"question":"Shout the word hello twice.","answer":"HELLO! HELLO!"}
EOF

step "a custom agent with a custom tool beside it"
cat >script.llm <<'EOF'
unless "role":"tool"
call shout {"word":"hello","times":2}
---
when HELLO! HELLO!
text HELLO! HELLO!
EOF
start_fake --script script.llm
expect_exit 0 agent run elsewhere/mine.lua --dataset questions.jsonl --model fake-model \
    --base-url "$BASE_URL" --output mine
assert_json mine/traces.jsonl 'd[0]["turns"][0]["tools_called"] == ["shout"]'
assert_json mine/traces.jsonl 'd[0]["is_resolved"] is True'
assert_json mine/manifest.json 'd["config"]["agent"] == "mine"'

step "its tool refuses an empty word, and the model reads why"
cat >script2.llm <<'EOF'
unless "role":"tool"
call shout {"word":""}
---
when word must not be empty
text nothing
EOF
start_fake --script script2.llm
expect_exit 0 agent run elsewhere/mine.lua --dataset questions.jsonl --model fake-model \
    --base-url "$BASE_URL" --output empty
assert_json empty/traces.jsonl 'd[0]["response_text"] == "nothing"'

step "the command lines of the README name options that exist"
"$IPW_AGENT" run --help=all >help.txt || fail "run --help"
for word in $(grep -o -- '--[a-z-]*' "$IPW_SOURCE_DIR/README.md" | sort -u); do
    case $word in
    --install | --prefix | --build | --target | --sort | --test | --packages | --help | --port | --format | --check | --log | --replay | --gate | --kind | -- | ---*) continue ;;
    esac
    grep -q -- "$word" help.txt || fail "run has no option $word"
done

end_test
