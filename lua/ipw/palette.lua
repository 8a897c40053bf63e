--- ipw.palette: the words and colours of domains, parts and outcomes, each written once: pages, figures and texts
--- take them from here. The colours can be told apart with every kind of colour vision; the parts that stand beside
--- each other also differ in grey.
local palette = {}

--- The domains in the order in which they are stacked and named.
palette.domains = { "gpu", "cpu", "dram", "machine" }
palette.domain = { gpu = "GPU", cpu = "CPU", dram = "DRAM", machine = "whole machine" }

--- The parts of a query in their order; a tool has its own name in place of this.
palette.parts = { "prefill", "decode", "lm", "tool", "agent", "wait" }
palette.part = { prefill = "prefill", decode = "decode", lm = "other model time", tool = "in a tool",
                 agent = "agent\u{2019}s own code", wait = "waiting to retry", warmup = "warm-up",
                 earlier = "earlier attempts", idle = "idle, no query in flight" }

--- How a query ended: its sign and its word.
palette.marks = { "right", "wrong", "failed", "stopped", "open" }
palette.sign = { right = "\u{2713}", wrong = "\u{2717}", failed = "!", stopped = "\u{2013}", open = "\u{00B7}" }
palette.mark = { right = "right", wrong = "wrong", failed = "failed", stopped = "stopped with the run",
                 open = "not scored" }

--- "GPU and CPU" of { "gpu", "cpu" }; `last` stands before the last one.
---@param domains string[]
---@param last? string
---@return string
function palette.devices(domains, last)
  local names = {}
  for i, domain in ipairs(domains) do names[i] = palette.domain[domain] or domain end
  if #names <= 1 then return names[1] or "nothing" end
  return table.concat(names, ", ", 1, #names - 1) .. " " .. (last or "and") .. " " .. names[#names]
end

-- On light ground (also paper), and on dark ground where that differs.
local colours = {
  bg      = { "#fdfdfb", "#14171b" }, ink    = { "#1b1e23", "#e8e9e6" }, muted    = { "#5c636e", "#a0a7b1" },
  hair    = { "#dcdcd6", "#343a42" }, grid   = { "#e9e9e4", "#262b32" }, panel    = { "#f5f5f1", "#1c2026" },
  prefill = { "#1b4f8f", "#3b70b5" }, decode = { "#4a92d4", "#8cc4f2" }, lm       = { "#a9c4e0", "#5c7690" },
  tool1   = { "#eca94a", "#e08a28" }, tool2  = { "#a85c06", "#f3bd78" }, tool3    = { "#f5cf95", "#c07428" },
  tool4   = { "#d67d00", "#f7dcb2" }, agent  = { "#b8447f", "#d07bb2" }, wait     = { "#6b6a2a", "#d6d08a" },
  idle    = { "#c4c7cc", "#575d66" }, gpu    = { "#0b7a6b", "#46b8a5" }, ["gpu-fill"] = { "#bfe0d9", "#1d4a44" },
  cpu     = { "#b08968", "#c9a47f" }, ["cpu-fill"] = { "#eadccb", "#4b3f33" }, ["cpu-text"] = { "#8a6640", "#c9a47f" },
  dram    = { "#9aa0a8", "#8c939c" }, ["dram-fill"] = { "#dfe1e4", "#343a42" },
  ["dram-text"] = { "#5c636e", "#a0a7b1" }, ["gpu-text"] = { "#0b7a6b", "#46b8a5" },
  machine = { "#1b1e23", "#e8e9e6" }, ["machine-fill"] = { "#e9e9e4", "#262b32" },
  ["machine-text"] = { "#1b1e23", "#e8e9e6" }, wrong = { "#b3361f", "#f08066" }, link = { "#1b4f8f", "#8cc4f2" },
  band    = { "#e3e4de", "#2d333b" }, other = { "#c4c7cc", "#575d66" },
  ["on-prefill"] = { "#ffffff", "#ffffff" }, ["on-decode"] = { "#10233a", "#10233a" },
  ["on-lm"]      = { "#10233a", "#ffffff" }, ["on-tool1"]  = { "#1b1e23", "#14171b" },
  ["on-tool2"]   = { "#ffffff", "#14171b" }, ["on-tool3"]  = { "#1b1e23", "#14171b" },
  ["on-tool4"]   = { "#1b1e23", "#14171b" }, ["on-agent"]  = { "#ffffff", "#14171b" },
  ["on-wait"]    = { "#ffffff", "#14171b" }, ["on-idle"]   = { "#1b1e23", "#ffffff" },
  ["on-other"]   = { "#1b1e23", "#ffffff" },
}

--- The colour of a name on paper: "#rrggbb".
---@param name string
---@return string
function palette.paper(name) return name == "bg" and "#ffffff" or colours[name][1] end

local function variables(ground)
  local names, out = {}, {}
  for name in pairs(colours) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do out[i] = ("--%s: %s;"):format(name, colours[name][ground]) end
  return table.concat(out, " ")
end

--- The colours as variables of a style sheet: the system's choice of light or dark, unless the page chose one
--- (data-theme). Paper is light.
---@return string
function palette.css()
  local dark = "{ color-scheme: dark; " .. variables(2) .. " }\n"
  return (":root { color-scheme: light; %s }\n"):format(variables(1))
    .. "@media screen and (prefers-color-scheme: dark) {\n:root:not([data-theme=\"light\"]) " .. dark .. "}\n"
    .. "@media screen {\n:root[data-theme=\"dark\"] " .. dark .. "}\n"
end

return palette
