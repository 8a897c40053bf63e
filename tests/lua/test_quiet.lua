--- ipw.quiet: who is ours, who is not, and what is said of it.
local quiet, test = require "ipw.quiet", require "ipw.test"
local equal = test.equal

local SERVER, WORKER, TOOL, MINER, HIDDEN, OURS = 4242, 4243, 101, 666, 7, 100

local function process(pid, parent, name, user, sys)
  return ("%d (%s) S %d 1 1 0 -1 4194304 100 0 0 0 %d %d 5 6 20 0 1 0 1\n"):format(pid, name, parent, user, sys or 0)
end

local function stat(user)
  return ("cpu  %d 0 10 5000 5 1 1 0 0 0\ncpu0 9 9 9 9 9 9 9 0 0 0\ncpu1 8 8 8 8 8 8 8 0 0 0\nintr 1\n"):format(user)
end

local TCP = [[
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 01 00000000:00000000 00:00000000 00000000  1000        0 111 1
   1: nowhere 00000000:0000 0A 0:0 00:0 0  1000        0 1 1
   2: 0100007F:zz 00000000:0000 0A 0:0 00:0 0  1000        0 2 1
   3: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1
]]

--- Two looks at a machine of two processors, one second of 100 ticks apart: the server took 110 ticks, our tool 20, a
--- backup 70.
local function machine()
  return {
    before = { stat = stat(1000),
      processes = { process(OURS, 1, "ipw-agent", 10, 10), process(TOOL, OURS, "tool (x) y", 0),
        process(SERVER, 1, "llama-server", 500), process(WORKER, SERVER, "worker", 100),
        process(300, 1, "backup job", 70), process(MINER, 1, "miner", 5) } },
    after = { stat = stat(1200), tcp = TCP, tcp6 = "", sockets = { { 9, 300 }, { 4242, SERVER } },
      processes = { process(OURS, 1, "ipw-agent", 10, 10), process(TOOL, OURS, "tool (x) y", 20),
        process(SERVER, 1, "llama-server", 560), process(WORKER, SERVER, "worker", 150),
        process(300, 1, "backup job", 130, 10), process(MINER, 1, "miner", 5) } },
    gpu = {}, pid = OURS, ports = { 8000 }, seconds = 1, ticks_per_s = 100,
  }
end

local BACKUP = "other programs use %s of 2 processors (most of it: %s)"

local function said(m) return quiet.judge(m).not_quiet end

return {
  { "the load of others, without ours and the server's", function()
    equal(quiet.judge(machine()), { known = true, not_quiet = BACKUP:format("0.7", "backup job") })
    local m = machine()
    m.ports = {} -- without the server in our tree it would be foreign
    equal(said(m), BACKUP:format("1.8", "backup job"))
    m = machine()
    m.seconds = 10
    equal(said(m), "", "less than a tenth of the machine")
    m.seconds = 0
    equal(said(m), "", "no time, no load")
  end },

  { "a whole processor is loud on the largest machine", function()
    local m = machine()
    m.ports, m.seconds = {}, 1.2
    for _, look in ipairs { m.before, m.after } do
      for i = 2, 63 do look.stat = look.stat .. ("cpu%d 1 1 1 1 1 1 1\n"):format(i) end
    end
    equal(said(m), "other programs use 1.5 of 64 processors (most of it: backup job)")
  end },

  { "who computes on the GPUs", function()
    for _, case in ipairs {
      { { SERVER, WORKER, TOOL, HIDDEN }, "" },
      { { HIDDEN, SERVER, MINER, 300 }, "process 666 (miner) computes on gpu0" },
    } do
      local m = machine()
      m.seconds = 100
      for i, pid in ipairs(case[1]) do m.gpu[i] = { channel = "gpu0", pid = pid } end
      equal(quiet.judge(m), { known = true, not_quiet = case[2] })
    end
    local m = machine()
    m.gpu[1] = { channel = "gpu1", pid = MINER }
    equal(said(m), BACKUP:format("0.7", "backup job") .. "; process 666 (miner) computes on gpu1")
  end },

  { "whose they are cannot be told when the server is hidden, or only its stand-in is seen", function()
    local hidden, stand_in = machine(), machine()
    hidden.after.sockets = { { 9, 300 } }
    stand_in.after.processes[3] = process(SERVER, 1, "docker-proxy", 560)
    for _, m in ipairs { hidden, stand_in } do
      m.seconds, m.gpu = 100, { { channel = "gpu0", pid = MINER } }
      equal(quiet.judge(m), { known = true, not_quiet = "",
        info = "cannot see which process listens on port 8000, so GPU processes of other users are not detected" })
    end
  end },

  { "a listener of the newer family, and lines that are none", function()
    local m = machine()
    m.ports, m.after.tcp = { 8081 }, "  sl  local_address\n"
    m.after.tcp6 = "   0: 00000000000000000000000001000000:1F91 0:0000 0A 0:0 00:0 0 1000 0 4242 1\n"
    equal(said(m), BACKUP:format("0.7", "backup job"))
  end },

  { "damaged files", function()
    for _, text in ipairs { "", "400 no brackets", "400 )x(", "400 (x) S", "400 (x" } do
      local m = machine()
      table.insert(m.after.processes, 1, text)
      equal(said(m), BACKUP:format("0.7", "backup job"))
    end
    for _, text in ipairs { "", "cpu  1 2 3\n", "cpu0 1 2 3 4 5 6 7\n" } do
      local m = machine()
      m.after.stat = text
      equal(quiet.judge(m), { known = false, not_quiet = "" })
    end
  end },

  { "processes that are each other's parents, and ones that are new", function()
    local m = machine()
    m.before.processes, m.ports = {}, {}
    m.after.processes = { process(5, 6, "chicken", 10), process(6, 5, "egg", 0) }
    equal(said(m), BACKUP:format("2.0", "chicken"))
  end },
}
