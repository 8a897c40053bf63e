# export: formats are found, listed, made, checked and set as tools are; the output appears complete or not at all.
. "$(dirname "$0")/lib.sh"

expect_exit 0 agent run tools --dataset gaia --limit 3 --model demo -q --output runs/one
expect_exit 0 agent run tools --dataset gaia --limit 2 --model demo -q --output runs/two

step "formats are listed, each with a line"
expect_exit 0 agent export --list
check_out "jsonl        one query per line"
check_out "mooncake     one request per line"
cp out listed
LC_ALL=C sort -c listed || fail "not in order"
assert_fits listed 80

step "a name that is wrong is answered with the nearest"
expect_exit 2 agent export runs/one --format jsnl
offers jsonl
expect_exit 2 agent export runs/one --format moncake
offers mooncake
expect_exit 2 agent export runs/one runs/two --format mooncake
check_err "takes one run"
expect_exit 2 agent export runs/one --redact everything

step "several runs, one after the other"
expect_exit 0 agent export runs/one runs/two
cat runs/one/traces.jsonl runs/two/traces.jsonl | cmp -s - out || fail "not the lines of both"
expect_exit 0 agent export runs/one runs/two -o both.jsonl
cmp -s out /dev/null && cat runs/one/traces.jsonl runs/two/traces.jsonl | cmp -s - both.jsonl || fail "not the file"

step "a new format works as it is written, beside the run and by its file"
expect_exit 0 agent new export mine --output runs/exports
expect_exit 0 agent check runs/exports/mine.lua
check_out "a good export, 'mine'"
expect_exit 0 agent test runs/exports/mine_test.lua
check_out "2 passed, 0 failed"
expect_exit 0 agent export runs/one --format mine
head -1 out | grep -q '^query_id,seconds,joules.$' || fail "no header"
assert_file_lines out 4
expect_exit 0 agent export runs/one --format runs/exports/mine.lua --set domain=gpu
expect_exit 2 agent export runs/one --format mine --set domain=gqu
check_err "--set, for the format mine"
expect_exit 2 agent export runs/one --format mine --set domian=gpu
check_err "unknown argument 'domian' (known: domain)"
expect_exit 2 agent export runs/one --format mine --set domain
check_err "expected KEY=VALUE"
mkdir -p home/data/ipw-agent/exports && cp runs/exports/mine.lua home/data/ipw-agent/exports/theirs.lua
expect_exit 0 agent export --list
check_out "theirs       one CSV row a query"

step "check names the line and what was meant"
cat >exports-bad.lua <<'LUA'
return {
  name = "bad",
  about = "x",
  loses = "y",
  wirtes = "file",
  writes = "flie",
  query = 5,
}
LUA
expect_exit 3 agent check exports-bad.lua
check_out "exports-bad.lua:5: unknown field 'wirtes'"
check_out "(did you mean 'writes'?)"
check_out "exports-bad.lua:6: writes: unknown output 'flie'"
check_out "(did you mean 'file'?)"
check_out "exports-bad.lua:7: query: expected a function"
expect_exit 3 agent export runs/one --format ./exports-bad.lua
check_err "exports-bad.lua: unknown field"

step "a format that fails leaves nothing behind, and says where"
cat >half.lua <<'LUA'
return { name = "half", about = "x", loses = "y", query = function(out, query)
  out:write("half\n")
  if query.query_index == 1 then error "no further" end
end }
LUA
echo before >half.txt
expect_exit 3 agent export runs/one --format ./half.lua -o half.txt
check_err "half.lua:3: no further"
assert_eq "$(cat half.txt)" before
[ ! -e half.txt.tmp ] || fail "half.txt.tmp was left"
sed 's/query = f/writes = "folder", query = f/; s/out:write/out:file(query.query_id) out:write/' half.lua >halves.lua
expect_exit 3 agent export runs/one --format ./halves.lua -o halves
[ ! -e halves ] && [ ! -e halves.tmp ] || fail "half a folder was left"
expect_exit 2 agent export runs/one --format ./halves.lua
check_err "this format writes a folder: --output must name it"
sed 's/query.query_id/"..\/out"/' halves.lua >outside.lua
expect_exit 2 agent export runs/one --format ./outside.lua -o halves
check_err "cannot be a file of the output folder"
mkdir taken && : >taken/file
expect_exit 1 agent export runs/one --format ./halves.lua -o taken
check_err "taken: exists already"
echo 'return { name = "loop", about = "x", loses = "y", query = function() while true do end end }' >loop.lua
expect_exit 3 agent export runs/one --format ./loop.lua --lua-cpu 100ms
check_err "CPU limit"

step "a script that is no format reads no run"
echo 'return require("ipw.core.export").open(1)' >spy.lua
expect_exit 3 agent check --kind tool spy.lua
check_out "only for formats of: ipw-agent export"

step "a full disk and a reader that goes away are told"
expect_exit 1 agent export runs/one -o /dev/full
check_err "/dev/full: cannot be written: No space left on device"
"$IPW_AGENT" export runs/one runs/one runs/one runs/one runs/one runs/one runs/one runs/one 2>err | :
check_err "standard output: cannot be written: Broken pipe"
expect_exit 1 agent export runs/one -o /dev/null/out
check_err "/dev/null/out: cannot be written: Not a directory"

step "a run that goes on, was killed or is damaged"
cp -r runs/one killed && rm killed/summary.json && printf '{"query_id":"q0' >>killed/traces.jsonl
damaged killed
expect_exit 0 agent export killed
check_err "killed: a torn last line was left out"
cmp -s out runs/one/traces.jsonl || fail "not the whole lines"
sed -i '2s/^./?/' killed/traces.jsonl
expect_exit 3 agent export killed -o half.txt
check_err "killed/traces.jsonl:2: "
assert_eq "$(cat half.txt)" before
expect_exit 3 agent export nowhere
check_err "nowhere: no such run"
expect_exit 0 agent export runs/one/traces.jsonl
cmp -s out runs/one/traces.jsonl || fail "a file of traces"

end_test
