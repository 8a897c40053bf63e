# S-11: what somebody put into the current folder is not run unless it was named.
. "$(dirname "$0")/lib.sh"

mkdir agents agents/tools tools datasets ipw lua
for file in react.lua agents/react.lua agents/tools/calculator.lua tools/calculator.lua calculator.lua gaia.lua \
    datasets/gaia.lua ipw/tools.lua ipw/llm.lua lua/ipw.lua score.lua config.lua .ipw-agent.lua init.lua; do
    mkdir -p "$(dirname $file)"
    echo 'error("planted")' >$file
done

step "names that the program has are the program's"
for agent in react tools single; do
    expect_exit 0 agent run $agent --dataset gaia --limit 2 --model demo --output run-$agent
    for stream in out err; do assert_lacks $stream planted; done
    assert_json run-$agent/traces.jsonl 'all(q["completed"] for q in d)'
    assert_json run-$agent/manifest.json 'd["config"]["scripts"] == [] and d["config"]["agent_file"].startswith("builtin:")'
done

step "a file that is named is run"
expect_exit 3 agent run agents/react.lua --dataset gaia --limit 1 --model demo --output named
match_err planted
expect_exit 3 agent run ./react.lua --dataset gaia --limit 1 --model demo --output named
match_err planted

end_test
