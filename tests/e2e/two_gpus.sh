# Two runs, with failures and odd texts: `measured`, by two GPUs and the processor, and `unmeasured`, without any sensor.
# Source it after lib.sh.
FAKES_DIR=$(dirname "$IPW_FAKE")
start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'TXT'
device GPU-aa Stub_H200 700000
energy 0 counter watts=300 period_ms=20
device GPU-bb Stub_H200 700000
energy 1 counter watts=100 period_ms=20
TXT
cat >rows.jsonl <<'ROWS'
{"question":"=SUM(A1), \"quotes\"\nand a second line?","answer":"42"}
{"question":"Question </script> & 2?","answer":"42"}
{"question":"Question 3, with \u00fcn\u00efc\u00f6d\u00e9 \ud83d\ude00?","answer":"41"}
{"question":"fail","answer":"42"}
ROWS
cat >mixed.lua <<'LUA'
local llm, tools, ipw = require "ipw.llm", require "ipw.tools", require "ipw"
return { name = "mixed", defaults = { tools = { "calculator" } }, run = function(query, cfg)
  if query.prompt == "fail" then error "made to fail" end
  local kit <close> = tools.open(cfg.tools)
  local thread = { llm.system "Answer briefly.", llm.user(query.prompt) }
  for _ = 1, 4 do
    local reply = llm.chat { messages = thread, tools = kit.schemas }
    thread[#thread + 1] = reply.message
    if #reply.calls == 0 then return reply.text end
    for _, result in ipairs(kit:call_all(reply.calls)) do thread[#thread + 1] = result end
    ipw.sleep(0.02)
  end
end }
LUA

step "the runs"
start_fake --bench 2 --delay-ms 60
export IPW_POWERCAP_ROOT="$WORK/tree" IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
expect_exit 0 agent run mixed.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms \
    --concurrency 2 --warmup 1 -q --output measured
assert_json measured/traces.jsonl "len(d) == 4 and sum(q['completed'] for q in d) == 3"
assert_json measured/traces.jsonl "len(d[0]['energy']['gpu']['devices']) == 2 and d[0]['energy']['gpu']['joules'] > 0"
unset IPW_STUB_NVML
export IPW_POWERCAP_ROOT="$WORK/no-powercap" IPW_NVML_LIBRARY="$WORK/no-nvml.so"
expect_exit 0 agent run mixed.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -q --epochs 2 --output unmeasured
