# What each command says of an option, a file or a run that it cannot take: the exit status tells which of the three it
# was, the message names it; and a standard output that takes nothing is a failure.
. "$(dirname "$0")/lib.sh"

printf '{"question":"Q?","answer":"42"}\n{"question":"Q2?","answer":"42"}\n' >rows.jsonl
printf 'time,w\n' >meter.csv
printf 'return { { "one", function() assert(1 == 1) end } }\n' >test.lua
expect_exit 0 agent run tools --dataset rows.jsonl --model demo -q --output run
cp -r run good
IPW_AGENT=${IPW_CONFINED:-$IPW_AGENT} # its own words: no option that is not in the table below

step "one message that names it"
cat >cases <<'EOF'
2|check|check: an argument is missing
2|check --kind agnt x.lua|--kind: tool, agent, dataset, model, export, analysis, plot, section or command, not 'agnt' (did you mean 'agent'?)
2|check --kind zzz x.lua|--kind: tool, agent, dataset, model, export, analysis, plot, section or command, not 'zzz'
3|check --kind agent x.lua|x.lua: No such file
3|show nowhere|nowhere: no such run
2|show run --kind pareto|--kind draws a figure
2|new|new: an argument is missing
2|new tool|new: an argument is missing
2|new agnt x|new: tool, agent, dataset, export, analysis, plot, section, command or program, not 'agnt' (did you mean 'agent'?)
2|new zzz q|new: tool, agent, dataset, export, analysis, plot, section, command or program, not 'zzz'
2|new tool a/b|new: invalid name 'a/b'
2|new tool -- -x|new: invalid name '-x'
2|new tool aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg|use up to 64 letters, digits, '_' or '-'
1|new tool x --output rows.jsonl/tools|rows.jsonl/tools: the folder cannot be created: Not a directory
2|export run --format jsnl|export: unknown format 'jsnl' (did you mean 'jsonl'?): --list lists the formats
2|export run --format zzz|export: unknown format 'zzz': --list lists the formats
2|export run --format run|export: --format run: --output names the new folder
2|export run --redact wrds|--redact wrds: expected text, tools or all
1|export run -o rows.jsonl/x|rows.jsonl/x: cannot be written: Not a directory
1|export run -o /dev/full|cannot be written
1|export run --format mooncake -o /dev/full|/dev/full: cannot be written
1|export run --format run --redact all -o run|run: already contains a run
3|export nowhere|nowhere: no such run
3|export rows.jsonl|rows.jsonl:1: query_id: expected a string, found nothing
2|replay run --mode hermtic|replay: no mode is called 'hermtic' (did you mean 'hermetic'?)
2|replay run --mode zzz|replay: no mode is called 'zzz'
2|replay run --speed 2|replay: --speed goes with --mode workload
2|replay run --follow --mode tools|replay: --follow goes with --mode show
2|replay run --tools calculator|replay: --tools goes with --mode hermetic, tools or workload
2|replay run --mode hermetic --from-divergence maybe|--from-divergence maybe: expected fail or live
2|replay run --mode tools --from-divergence live|--from-divergence goes with --mode hermetic
2|replay run --mode hermetic --from-divergence live|--from-divergence live: name the server to continue with (--base-url)
2|replay run --mode hermetic --from-divergence live --base-url http://127.0.0.1:1/v1 --api-key-env NOT_THERE|--api-key-env NOT_THERE: that variable is not set
3|replay run --query zzz|run: there is no query "zzz"
3|replay run --mode hermetic --query zzz|run: there is no query "zzz"
3|replay nowhere --follow|nowhere: no such run
1|replay run --mode hermetic -o run|run: already contains a run
3|replay run --mode tools --dataset nowhere.jsonl|nowhere.jsonl: No such file
3|replay run --mode hermetic --agent nowhere.lua|nowhere.lua: no such agent file
2|replay run --mode workload --speed 0 --model demo|--speed: expected a number above zero
2|replay run --mode workload --speed 2000000 --model demo|--speed: expected a number above zero
2|replay run --mode workload --speed x --model demo|--speed: 'x' is not a number
2|replay run --mode workload|--mode workload needs --base-url: a saved run does not choose the server
2|replay run --mode workload --model demo --max-lag x|--max-lag: 'x' is not a duration
2|replay run --mode workload --model demo --share x|--share x: expected one of equal, model-time, phase
2|cat agents/reakt.lua|cat: no built-in file is called 'agents/reakt.lua' (did you mean 'agents/react.lua'?)
2|cat zzzzzzzz|cat: no built-in file is called 'zzzzzzzz'
2|cat agents/react.lua extra|cat: unexpected argument 'extra'
2|list|list: an argument is missing
2|list agnts|list: unknown kind 'agnts' (did you mean 'agents'?)
2|list zzz|list: unknown kind 'zzz'; use agents
1|list models --base-url http://127.0.0.1:1/v1|connection refused
2|list models --base-url ftp://x|base URL 'ftp://x': only http:// and https:// are spoken
2|list models --api-key-env NOT_THERE|--api-key-env NOT_THERE: that variable is not set
2|serve --port 99999|--port: 99999 is outside 0 to 65535
2|serve --host 1.2.3.4.5 --port 0|host '1.2.3.4.5': only loopback addresses
3|serve --model nowhere.lua|model: nowhere.lua: no such model file
3|serve --replay nowhere|nowhere: no such run
2|serve --replay run --speed x|serve: --speed x: expected a number
2|serve --replay run --model demo|serve: --model goes not with --replay
2|serve --speed 2|serve: --speed goes with --replay
3|telemetry --read nowhere|nowhere: no such run
3|telemetry --read rows.jsonl|rows.jsonl:1: sources: expected an array
2|telemetry --listen nowhere|--listen nowhere: expected ADDRESS:PORT
2|telemetry --listen 127.0.0.1:99999|--listen 127.0.0.1:99999: expected ADDRESS:PORT: 99999 is outside
1|telemetry --record run|run: already exists
2|doctor --base-url ftp://x|base URL 'ftp://x': only http:// and https:// are spoken
2|list models --base-url http://①②⑦.⓪.⓪.①/v1|the host has letters outside ASCII: write it as DNS does (xn--...)
2|doctor --api-key-env NOT_THERE|--api-key-env NOT_THERE: that variable is not set
2|meter run|meter: --log FILE is needed
3|meter run --log nowhere|nowhere: No such file
3|meter run --log rows.jsonl|rows.jsonl:1: no column of watts or joules
3|meter run --log meter.csv|meter.csv: column w has fewer than two readings
3|meter run --log meter.csv --column q|meter.csv:1: no column 'q'
2|meter run --log meter.csv --offset x|--offset: 'x' is not a number
3|meter nowhere --log meter.csv|nowhere: no such run
3|ledger nowhere|nowhere: no such run
2|compare|compare: an argument is missing
3|compare run nowhere|nowhere: no such run
3|validate rows.jsonl|rows.jsonl: not a run folder
3|repair rows.jsonl|rows.jsonl/manifest.json
3|repair nowhere|nowhere: no such run
3|resume nowhere|nowhere: no such run
3|score nowhere|nowhere: no such run
3|score run --dataset nowhere.jsonl|nowhere.jsonl: No such file
3|score run --scorer zzz --dataset rows.jsonl|unknown scorer 'zzz'
2|test|test: an argument is missing
1|test nowhere.lua|nowhere.lua: No such file
3|tool nothing|no tool is named 'nothing'
3|tool calculator --workspace /nowhere {"expression":"1"}|--workspace /nowhere: No such file
2|repl --model demo --api-key-env NOT_THERE|--api-key-env NOT_THERE: that variable is not set
2|run|run: an argument is missing
2|run single|run: --dataset is missing
3|run single --dataset nowhere.jsonl --model demo|nowhere.jsonl: No such file
2|run single --dataset rows.jsonl --model demo --query zzz|zzz
2|run single --dataset rows.jsonl --model demo --rerun all|run: --rerun goes with --resume
2|run single --dataset rows.jsonl --model demo --force|run: --force goes with --resume
2|run single --dataset rows.jsonl --model demo --share x|--share x: expected
2|run single --dataset rows.jsonl --model demo --limit x|--limit
2|run single --dataset rows.jsonl --model demo --limit 5-2|--limit
2|run single --dataset rows.jsonl --model demo --energy-limit x|--energy-limit
2|run single --dataset rows.jsonl --model demo --body x|--body
2|run single --dataset rows.jsonl --model demo --header x|--header
2|run single --dataset rows.jsonl --model demo --temperature x|--temperature: 'x' is not a number
2|run nowhere.lua --dataset rows.jsonl --model demo|nowhere.lua: no such agent file
1|run single --dataset rows.jsonl --base-url http://127.0.0.1:1/v1 --model m|connection refused
EOF
while IFS='|' read -r code words message; do
    step "$words"
    # shellcheck disable=SC2086 -- words of a command line
    expect_exit "$code" agent $words
    check_err "$message"
    [ "$code" -ne 2 ] || one_message
done <cases

step "each command has its help, and no other option"
for command in run resume replay score export compare ledger validate repair meter telemetry serve list doctor show new \
    check tool test repl; do
    expect_exit 0 agent $command --help
    check_out "usage: ipw-agent $command"
    expect_exit 2 agent $command --no-such-option
    check_err "$command: unknown option '--no-such-option'"
    one_message
done

step "a standard output that takes nothing is a failure"
if [ -c /dev/full ]; then
    for words in "validate run" "validate run --json" "replay run" "replay run --follow" "replay run --mode hermetic" \
        "ledger run" "ledger run --json" "compare run good" "compare run good --json" "export run" \
        "export run --format mooncake" "score good --dataset rows.jsonl" "cat" "cat agents/react.lua" "list agents" \
        "list sensors" "telemetry" "telemetry --json" "tool calculator {\"expression\":\"1\"}" "test test.lua" "new tool abc" \
        "repair good" "--help" "--version" "run --help" "run single --dataset rows.jsonl --model demo"; do
        step "a full standard output: $words"
        # shellcheck disable=SC2086
        timeout -k 5 60 "$IPW_AGENT" $words >/dev/full 2>err </dev/null
        assert_eq $? 1
        check_err "$(printf 'written')"
    done
fi

step "no command, or none of that name"
expect_exit 2 agent
check_err "ipw-agent run react gaia-sample"
for word in help -h --help; do
    expect_exit 0 agent $word
    check_out "usage: ipw-agent COMMAND"
done
expect_exit 0 agent --version
expect_exit 2 agent rnu
offers run
for word in zzzzzzzz -V --nothing; do
    expect_exit 2 agent $word
    check_err "unknown command '$word'"
done

step "standard descriptors that are closed, a reader that leaves, limits that are low or high"
"$IPW_AGENT" list agents >&- 2>err && fail "a closed standard output was taken"
check_err "standard output: the result could not be written"
"$IPW_AGENT" list agents <&- >out || fail "a closed standard input"
"$IPW_AGENT" list agents 2>&- >out || fail "a closed standard error"
assert_eq "$("$IPW_AGENT" cat 2>err | head -n 1)" agents/code.lua
[ ! -s err ] || fail "a reader that leaves is no failure"
for limits in "-n 64" "-s 1024" "-s unlimited"; do
    # shellcheck disable=SC2086
    (ulimit $limits 2>/dev/null && "$IPW_AGENT" tool calculator '{"expression":"1+1"}' >out) || [ "$limits" = "-s unlimited" ] ||
        fail "ulimit $limits"
done

step "the help of every command fits a terminal of 80 columns"
"$IPW_AGENT" --help >help
awk '/^  [a-z]/ { print $1 }' help | grep -v ipw-agent >commands
[ "$(wc -l <commands)" -ge 20 ] || fail "commands of the help: $(cat commands)"
while read -r command; do
    "$IPW_AGENT" "$command" --help >>help || fail "$command --help"
done <commands
awk 'length > 80' help >wide
[ ! -s wide ] || fail "wider than 80 columns: $(cat wide)"

step "lists"
expect_exit 0 agent cat
check_out agents/react.lua
expect_exit 0 agent list agents --path nowhere
check_out builtin:agents/react.lua
expect_exit 0 agent validate run
expect_exit 0 agent resume run
expect_exit 0 agent score run --dataset rows.jsonl --json
expect_exit 0 agent replay run --mode hermetic --json
check_out '"identical":true'
expect_exit 0 agent replay run --mode workload --model demo --query q0000
expect_exit 0 agent replay run --mode workload --model demo --limit 1 --json
expect_exit 0 agent doctor --model demo --json
check_out '"findings"'
TMPDIR=/nowhere expect_exit 0 agent tool calculator '{"expression":"1"}'
TMPDIR=/nowhere expect_exit 1 agent tool read_file '{"path":"x"}'
check_err /nowhere/ipw-agent-
TMPDIR=relative expect_exit 0 agent tool calculator '{"expression":"1"}'

end_test
