# The demo run under valgrind: no error, no leak.
# Long: the sanitizers find the same, in more tests and less time.
. "$(dirname "$0")/lib.sh"

[ -z "${IPW_SANITIZE-}" ] || skip "built with sanitizers"
command -v valgrind >/dev/null || skip "valgrind is missing; Debian: apt-get install valgrind"

step "three tasks of the sample with the demo model"
IPW_WRAP="valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible --trace-children=no --num-callers=25"
IPW_LIMIT_S=200
expect_exit 0 agent run react --dataset gaia --limit 3 --model demo --output out1
assert_file_lines out1/traces.jsonl 3

step "native tools"
expect_exit 0 agent run tools --dataset gaia --limit 2 --model demo --output out2
assert_file_lines out2/traces.jsonl 2

end_test
