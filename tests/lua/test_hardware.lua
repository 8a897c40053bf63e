--- ipw.hardware: labels (the upstream project's for each kind of device, and ours), and facts from texts of files.
local hardware = require "ipw.hardware"
local json = require "ipw.core.json"
local test = require "ipw.test"

local equal = test.equal

local upstream = {
  { "NVIDIA H100 80GB HBM3", nil, "H10080GB" },
  { "NVIDIA H100 80GB HBM3 x8", nil, "H10080GB" },
  { "NVIDIA A100-SXM4-80GB", nil, "A100SXM4" },
  { "NVIDIA H200", nil, "H200" },
  { "NVIDIA H200 x1", nil, "H200x1" },
  { "NVIDIA GeForce RTX 4090", nil, "RTX4090" },
  { "NVIDIA GeForce RTX 4090 x1", nil, "RTX4090" },
  { "nvidia rtx 3090", nil, "RTX3090" },
  { "NVIDIA RTX 6000 Ada Generation", nil, "RTX6000" },
  { "Tesla V100", nil, "V100" },
  { "Tesla T4 x1", nil, "T4x1" },
  { "NVIDIA L40S x4", nil, "L40Sx4" },
  { "NVIDIA (2 GPUs)", nil, "2" },
  { "NVIDIA GPU 0", nil, "GPU0" },
  { "NVIDIA GPU group", nil, "GROUP" },
  { "AMD Instinct MI300X", nil, "MI300X" },
  { "AMD Radeon RX 7900 XTX", nil, "RX7900" },
  { nil, "Apple M2 Pro", "M2" },
  { nil, "Apple M4 Max", "M4" },
  { nil, "Intel(R) Core(TM) i9-13900K", "TMi9" },
  { nil, "13th Gen Intel(R) Core(TM) i7-13700H", "TMi7" },
  { nil, "Intel Core i9", "I9" },
  { nil, "AMD EPYC 9654 96-Core Processor", "EPYC9654" },
  { nil, "AMD Ryzen 9 7950X 16-Core Processor", "7950X16" },
  { nil, "Intel(R) Xeon(R) Gold 6430", "6430" },
  { nil, "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "CPUE5" },
  { "Apple GPU", "Apple M1", "M1" },
  { nil, "VirtualApple", "VirtualApple" },
  { nil, "", "UNKNOWN_HW" },
  { nil, "---", "UNKNOWN_HW" },
  { "Graphics", "Processor", "Graphics" },
  { "Orin (nvgpu)", "ARMv8 Processor rev 1 (v8l)", "REV1" },
  { "NVIDIA Jetson Orin Nano Developer Kit", "Cortex-A78AE", "A78AE" },
}

local ours = {
  { "NVIDIA H100 80GB HBM3", 1, "x", "H100 80GB HBM3" },
  { "NVIDIA H100 80GB HBM3", 8, "x", "8x H100 80GB HBM3" },
  { "NVIDIA GeForce RTX 4090", 2, "x", "2x RTX 4090" },
  { "NVIDIA A100-SXM4-80GB", 4, "x", "4x A100-SXM4-80GB" },
  { nil, 0, "AMD EPYC 9654 96-Core Processor", "EPYC 9654" },
  { nil, 0, "AMD Ryzen 9 7950X 16-Core Processor", "Ryzen 9 7950X" },
  { nil, 0, "13th Gen Intel(R) Core(TM) i7-13700H", "i7-13700H" },
  { nil, 0, "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "Xeon E5-2690 v4" },
  { nil, 0, "", "unknown" },
  { "GPU", 3, "", "3x GPU" },
  { "NVIDIA", 1, "x", "GPU" },
  { "", 2, "12th Gen Intel(R) Core(TM) i5-1240P", "i5-1240P" },
  { "NVIDIA H100", 0, nil, "unknown" },
  { nil, 0, "th Smith 7 Zenith", "th Smith 7 Zenith" },
}

--- The object of these facts; `sources`: lists of channels.
local function made(facts, sources)
  facts.channels, facts.source_numbers, facts.sensors, facts.basis = {}, {}, {}, {}
  for i, channels in ipairs(sources or {}) do
    for _, channel in ipairs(channels) do
      facts.channels[#facts.channels + 1], facts.source_numbers[#facts.source_numbers + 1] = channel, i - 1
    end
  end
  for _, key in ipairs { "cpuinfo", "driver", "governor", "vendor" } do
    if facts[key] == nil then facts[key] = json.null end
  end
  return hardware.document(facts)
end

local function gpu(device, more)
  local channel = { device = device, domain = "gpu", kind = "counter", remote = false, in_sum = true }
  for key, value in pairs(more or {}) do channel[key] = value end
  return channel
end

return {
  { "upstream's label", function()
    for _, row in ipairs(upstream) do equal(hardware.label_upstream(row[1], row[2]), row[3]) end
  end },
  { "our label", function()
    for _, row in ipairs(ours) do equal(hardware.label({ n = row[2], model = row[1] }, { n = 0 }, row[3]), row[4]) end
  end },
  { "facts of files", function()
    local doc = made({
      cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\nphysical id\t: 0\ncore id\t: 0\n"
        .. "flags\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: x\nphysical id\t: 0\ncore id\t: 1\n\n"
        .. "processor\t: 2\nphysical id\t: 1\ncore id\t: 0\n\nprocessor\t: 3\nphysical id\t: 1\ncore id\t: 0\n",
      driver = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC version: 12\n",
      governor = "performance\n", vendor = "QEMU\n",
    }, { { gpu "GPU-aa NVIDIA H100 80GB", gpu("GPU-aa NVIDIA H100 80GB", { kind = "metric" }),
           gpu "GPU-bb NVIDIA H100 80GB", gpu("GPU-aa NVIDIA H100 80GB", { kind = "gauge" }) } })
    equal({ doc.cpu, doc.cpu_sockets, doc.cpu_cores, doc.governor }, { "AMD EPYC 9654 96-Core Processor", 2, 3,
      "performance" })
    equal({ doc.virtualised, doc.driver, doc.gpu_count, doc.gpu }, { "QEMU", "550.54.15", 2, "NVIDIA H100 80GB" })
    equal(doc.labels, { hw = "2x H100 80GB", upstream = "H10080GB" })
    doc = made {}
    for _, key in ipairs { "cpu", "cpu_sockets", "cpu_cores", "governor", "virtualised", "driver", "gpu" } do
      equal(doc[key], json.null)
    end
    equal({ doc.gpu_count, doc.labels }, { 0, { hw = "unknown", upstream = "UNKNOWN_HW" } })
  end },
  { "virtual or not", function()
    local cases = {
      { "flags\t: fpu hypervisor\n", nil, "hypervisor" },
      { "flags\t: fpu hypervisor\nflags\t: fpu hypervisor\n", "Amazon EC2\n", "Amazon EC2" },
      { "flags\t: fpu hypervisor\n", "Dell Inc.\n", "hypervisor" },
      { "flags\t: fpu sse\n", "Google\n", "no" }, -- who sells real ones, too
      { "flags\t: fpu sse\n", nil, "no" },
      { nil, "QEMU\n", "QEMU" },
      { nil, "Google\n", json.null },
      { nil, "\n", json.null },
      { "Features : fp asimd\n", nil, json.null },
    }
    for _, case in ipairs(cases) do equal(made({ cpuinfo = case[1], vendor = case[2] }).virtualised, case[3]) end
  end },
  { "a key counts only as a whole; the driver's version has a dot", function()
    local text = "processor: 0\nprocessors\t: 8\nprocessor 1\nmodel name: a\nmodel name : b\nmodel namely\t: c\n"
    equal(made({ cpuinfo = text }).cpu, "a")
    for line, driver in pairs { ["NVRM version: NVIDIA UNIX 64 Module  535.1\n"] = "535.1",
      ["NVRM version: 64 unknown\n"] = json.null, [""] = json.null } do
      equal(made({ driver = line }).driver, driver)
    end
  end },
  { "boards count by their identity, of the first source that has any; those of a second maker beside them", function()
    local rapl = { { device = "cpu", domain = "cpu", kind = "counter" } }
    local boards = { gpu("GPU-aa", { kind = "metric" }), gpu("GPU-zz", { remote = true }),
                     { device = "GPU-aa", domain = "cpu", kind = "counter" }, gpu "GPU-aa", gpu "GPU-ab" }
    local doc = made({}, { rapl, boards })
    equal({ doc.gpu_count, doc.gpu }, { 2, "GPU-aa" }) -- no name beside the identity: the identity
    equal(made({}, { rapl }).gpu_count, 0)
    local nvidia = { gpu "GPU-aa NVIDIA H100 PCIe", gpu "GPU-bb NVIDIA H100 PCIe" }
    local page = { gpu("GPU-aa NVIDIA H100 PCIe", { in_sum = false }) } -- an exporter's view of the same boards
    equal(made({}, { nvidia, page }).labels.hw, "2x H100 PCIe")
    local amd = { gpu "0000:03:00.0 AMD Radeon PRO W7900" }
    equal(made({}, { nvidia, page, amd }).labels.hw, "2x H100 PCIe + PRO W7900")
  end },
}
