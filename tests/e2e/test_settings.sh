# Settings files: the user's and the folder's, under the command line; in the manifest, in `doctor`, and no wider trust.
. "$(dirname "$0")/lib.sh"

echo '{"question":"What is 40 + 2?","answer":"42"}' >rows.jsonl
mkdir -p "$XDG_CONFIG_HOME/ipw-agent"
user="$XDG_CONFIG_HOME/ipw-agent/ipw-agent.lua"
start_fake --bench 1

step "the user's file"
cat >"$user" <<LUA
return {
  server = "$BASE_URL", model = "mine", kwh_price = 0.30, sensors = "none", concurrency = 3,
  judge = { model = "wise", url = "$BASE_URL" },
}
LUA
expect_exit 0 agent run single rows.jsonl -o one
assert_json one/manifest.json 'd["config"]["model"] == "mine" and d["config"]["kwh_price"] == 0.3 and d["config"]["concurrency"] == 3'
assert_json one/manifest.json '"--judge-model" in d["command"]["args"] and d["config"]["client_base_url"].startswith("http://127.0.0.1")'

step "the folder's file wins over it, and the command line over both"
echo 'return { model = "ours", kwh_price = 0.5, prices = "free" }' >ipw-agent.lua
expect_exit 0 agent run single rows.jsonl -o two --kwh-price 0.7
assert_json two/manifest.json 'd["config"]["model"] == "ours" and d["config"]["kwh_price"] == 0.7 and d["config"]["price"] == "free"'
assert_json two/manifest.json 'd["command"]["args"].count("--kwh-price") == 1'
expect_exit 0 agent run single --model demo rows.jsonl -o three
assert_json three/manifest.json 'd["config"]["model"] == "demo"'

step "doctor names the files in force"
"$IPW_AGENT" doctor >out 2>err || true # other findings are of this machine
check_out "$user: "
check_out "ipw-agent.lua: kwh_price, model, prices"

step "resume: with the values of the run"
echo 'return { model = "another" }' >ipw-agent.lua
expect_exit 0 agent resume two
assert_json two/manifest.json 'd["config"]["model"] == "ours"'

step "a key is of its server: another one does not get it"
cat >"$user" <<LUA
return { server = "$BASE_URL", key = "MY_KEY" }
LUA
rm ipw-agent.lua
export MY_KEY=sk-settings-0123456789abcdef
expect_exit 0 agent run single rows.jsonl -o keyed --model m
assert_json keyed/manifest.json '"--api-key-env" in d["command"]["args"]'
grep -q "$MY_KEY" "$FAKE_LOG" || fail "the server of the settings did not get its key"
start_fake --bench 1
expect_exit 0 agent run single rows.jsonl -o other --model m -u "$BASE_URL"
assert_json other/manifest.json '"--api-key-env" not in d["command"]["args"]'
echo "return { server = \"$BASE_URL\" }" >ipw-agent.lua
expect_exit 0 agent run single rows.jsonl -o folder --model m
assert_json folder/manifest.json '"--api-key-env" not in d["command"]["args"]'
! grep -q "$MY_KEY" "$FAKE_LOG" || fail "another server got the key"

step "a folder's file that would loosen trust is refused; an endless one ends"
for line in 'return { unsafe_tools = true }' 'return { key = "MY_KEY" }' 'return { server = "https://example.org/v1" }' 'while true do end'; do
    echo "$line" >ipw-agent.lua
    expect_exit 2 agent run single rows.jsonl -o never
    [ ! -e never ] || fail "a refused run made its folder: $line"
done
check_err "the script passed its CPU limit"
rm ipw-agent.lua

end_test
