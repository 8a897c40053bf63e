--- The first generation's profile folder: profile_<hardware>_<model>_<dataset>/ with ProfilingRecord
--- rows and summary.json, as the original's `analyze` and `plot` read it.
local arrow = require "ipw.arrow"
local export = require "ipw.export"
local json = require "ipw.json"

local function stat(name)
  return { name, { { "avg", "float64" }, { "max", "float64" }, { "median", "float64" },
                   { "min", "float64" } } }
end

local function numbers(name, keys)
  local list = {}
  for i, key in ipairs(keys) do list[i] = { key, "float64" } end
  return { name, list }
end

local metrics = {
  numbers("compute_metrics", { "flops_per_request", "macs_per_request" }),
  numbers("energy_metrics", { "per_query_joules", "total_joules", "cpu_per_query_joules",
                              "cpu_total_joules", "energy_per_output_token_joules",
                              "per_query_joules_lo", "per_query_joules_hi", "per_query_joules_u",
                              "cpu_per_query_joules_lo", "cpu_per_query_joules_hi",
                              "cpu_per_query_joules_u" }),
  numbers("latency_metrics", { "per_token_ms", "throughput_tokens_per_sec",
                               "time_to_first_token_seconds", "total_query_seconds" }),
  { "memory_metrics", { stat "cpu_mb", stat "gpu_mb" } },
  { "power_metrics", { { "gpu", { stat "per_query_watts", stat "total_watts" } },
                       { "cpu", { stat "per_query_watts", stat "total_watts" } } } },
  stat "temperature_metrics",
  { "token_metrics", { { "input", "int64" }, { "output", "int64" }, { "total", "int64" } } },
  numbers("cost", { "total_cost_usd" }),
  { "hardware_utilization", {
    numbers("gpu", { "compute_utilization_pct", "memory_bandwidth_utilization_pct", "memory_total_gb",
                     "memory_used_gb", "tensor_core_utilization_pct" }),
    numbers("derived", { "arithmetic_intensity", "mbu", "mfu" }) } },
  { "gpu_info", { { "name", "string" }, { "vendor", "string" }, { "device_id", "int64" },
                  { "device_type", "string" }, { "backend", "string" }, { "count", "int64" },
                  { "driver", "string" }, { "memory_total_gb", "float64" } } },
  { "system_info", { { "os_name", "string" }, { "os_version", "string" }, { "kernel_version", "string" },
                     { "host_name", "string" }, { "cpu_count", "int64" }, { "cpu_brand", "string" } } },
  { "evaluation", { { "is_correct", "bool" }, { "metadata", "string" } } },
  { "lm_correctness", "bool" }, { "lm_response", "string" },
}

local function slug(text)
  local s = tostring(text):gsub("[^%w]", "_"):gsub("^_+", ""):gsub("_+$", "")
  return s ~= "" and s or "model"
end

local function sum_of(turns, key)
  local sum
  for _, turn in ipairs(turns or {}) do
    if turn[key] then sum = (sum or 0.0) + turn[key] end
  end
  return sum
end

--- The sources that read this machine's GPUs: who made those, and what reads them.
local gpu_sources = {
  nvml = { vendor = "NVIDIA", backend = "NVML" }, amdgpu = { vendor = "AMD", backend = "hwmon" },
  intel_gpu = { vendor = "Intel", backend = "hwmon" },
}

--- The GPUs as the original's gpu_info has them, by the first of them, and their number, driver and memory;
--- nil for a machine without one.  `driver` is the version of NVIDIA's.
local function gpu_info(hardware)
  if not hardware.gpu then return nil end
  local info = {
    name = hardware.gpu, device_type = "GPU", count = hardware.gpu_count,
    memory_total_gb = hardware.gpu_memory_bytes and hardware.gpu_memory_bytes / 2 ^ 30,
  }
  for _, channel in ipairs(hardware.channels or {}) do
    local source = not channel.remote and channel.domain == "gpu" and gpu_sources[channel.source]
    if source then
      info.vendor, info.backend = source.vendor, source.backend
      info.device_id = math.tointeger(tonumber(channel.name:match "^%a+(%d+)"))
      break
    end
  end
  if info.vendor == "NVIDIA" then info.driver = hardware.driver end
  return info
end

--- The version of the operating system is not in a manifest.
local function system_info(hardware)
  return { os_name = hardware.os, kernel_version = hardware.kernel, host_name = hardware.host,
           cpu_count = hardware.cpu_count, cpu_brand = hardware.cpu }
end

local function metrics_of(query, hardware)
  local gpu, cpu = export.joules(query, "gpu"), export.joules(query, "cpu")
  local energy = query.energy or {}
  local of_gpu, of_cpu = gpu and energy.gpu or {}, cpu and energy.cpu or {} -- a null has no bounds here
  local decode, first = sum_of(query.turns, "decode_s"), query.turns and query.turns[1] or {}
  return {
    energy_metrics = { per_query_joules = gpu, total_joules = gpu,
                       cpu_per_query_joules = cpu, cpu_total_joules = cpu,
                       energy_per_output_token_joules = query.energy_per_output_token_joules,
                       per_query_joules_lo = of_gpu.lo, per_query_joules_hi = of_gpu.hi,
                       per_query_joules_u = of_gpu.u,
                       cpu_per_query_joules_lo = of_cpu.lo, cpu_per_query_joules_hi = of_cpu.hi,
                       cpu_per_query_joules_u = of_cpu.u },
    latency_metrics = { time_to_first_token_seconds = first.ttft_s,
                        total_query_seconds = query.total_wall_clock_s,
                        throughput_tokens_per_sec = query.throughput_tokens_per_sec,
                        per_token_ms = decode and (query.total_output_tokens or 0) > 0
                          and 1000 * decode / query.total_output_tokens or nil },
    memory_metrics = query.memory_metrics, power_metrics = query.power_metrics,
    temperature_metrics = query.temperature_metrics,
    token_metrics = { input = query.total_input_tokens, output = query.total_output_tokens,
                      total = query.total_tokens },
    cost = { total_cost_usd = query.total_cost_usd },
    hardware_utilization = query.hardware_utilization,
    gpu_info = gpu_info(hardware), system_info = system_info(hardware),
    evaluation = { is_correct = query.is_resolved, metadata = json.encode(query.score_metadata or {}) },
    lm_correctness = query.is_resolved, lm_response = query.response_text,
  }
end

local function summary_of(out, run)
  local config, hardware = out.config, out.machine
  local program, summary = run.manifest and run.manifest.program or {}, {}
  for key, value in pairs(run.summary or {}) do summary[key] = value end
  summary.model, summary.dataset, summary.dataset_name = out.model, config.dataset, config.dataset
  summary.hardware_label, summary.output_dir = out.hardware, out.folder
  summary.total_queries = out.count
  summary.system_info = system_info(hardware)
  summary.gpu_info = gpu_info(hardware) or json.null
  summary.versions = { ipw_agent = program.version }
  summary.profiler_config = { dataset_id = config.dataset, dataset_params = {}, model = out.model }
  return summary
end

return {
  name   = "ipw",
  about  = "profile folder of the first IPW: ProfilingRecord rows, summary",
  loses  = "Turns, spans, tools, provenance, DRAM and machine joules.",
  writes = "folder",

  run = function(out, run)
    local config = run.manifest and run.manifest.config or {}
    out.machine = run.manifest and run.manifest.hardware or {}
    out.config, out.model = config, config.model or "unknown"
    out.hardware = (out.machine.labels or {}).upstream or "UNKNOWN_HW"
    out.folder = ("profile_%s_%s_%s"):format(out.hardware, slug(out.model),
      (tostring(config.dataset or "dataset"):gsub("[^%w._-]", "_")))
    out.count = 0
    out.set = arrow.open(out, out.folder .. "/", {
      { "problem", "string" }, { "answer", "string" }, { "dataset_metadata", "string" },
      { "subject", "string" }, { "model_answers", { { out.model, "string" } } },
      { "model_metrics", { { out.model, metrics } } } })
  end,

  query = function(out, query)
    out.count = out.count + 1
    arrow.add(out.set, {
      problem = query.query_text, answer = query.reference_answer,
      subject = query.subject or query.workload_type,
      dataset_metadata = json.encode(query.metadata or {}),
      model_answers = { [out.model] = query.response_text },
      model_metrics = { [out.model] = metrics_of(query, out.machine) } },
      #(query.query_text or "") + 2 * #(query.response_text or ""))
  end,

  after = function(out, run)
    arrow.close(out.set, ("%016x"):format(export.hash(run.name)))
    out:file(out.folder .. "/summary.json")
    out:json(summary_of(out, run))
  end,
}
