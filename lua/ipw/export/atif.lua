--- Agent trajectories as Harbor reads them (ATIF): one document a query, energy in `extra`.
local export = require "ipw.export"
local json = require "ipw.json"

local function energy_of(part, key)
  local out = {}
  for _, domain in ipairs(export.domains) do
    local figure = export.figure((part[key or "energy"] or {})[domain])
    if figure.joules or figure.estimate then
      out[domain] = { joules = figure.joules, lo = figure.lo, hi = figure.hi, u = figure.u,
                      provenance = figure.provenance, estimate_joules = figure.estimate }
    end
  end
  return next(out) and out or nil
end

local function arguments_of(value)
  if type(value) == "string" then value = json.decode(value) or { arguments = value } end
  if type(value) ~= "table" then return {} end
  return #value > 0 and { arguments = value } or json.object(value)
end

--- Calls that the reply asked for, and tools that ran without one (text protocols); with their results.
local function calls_and_results(call, number)
  local calls, results, known = {}, {}, {}
  for i, asked in ipairs(call.reply and call.reply.calls or {}) do
    local id = asked.id
    if not id or id == "" or known[id] then id = ("call_%d_%d"):format(number, i) end
    known[id] = true
    calls[i] = { tool_call_id = id, function_name = asked.name or "",
                 arguments = arguments_of(asked.arguments) }
  end
  for i, tool in ipairs(call.tools) do
    local id = tool.call_id
    if not (id and known[id]) then
      id = ("call_%d_run_%d"):format(number, i)
      known[id] = true
      calls[#calls + 1] = { tool_call_id = id, function_name = tool.name or "",
                            arguments = arguments_of(tool.arguments) }
    end
    results[#results + 1] = { source_call_id = id, content = export.text_of(tool.content),
                              extra = { start_ns = tool.start_ns, end_ns = tool.end_ns, ok = tool.ok,
                                        error = tool.error } }
  end
  return #calls > 0 and json.list(calls) or nil,
    #results > 0 and { results = json.list(results) } or nil
end

local function agent_step(steps, query, call, turn)
  local reply, number = call.reply or {}, #steps + 1
  local calls, observation = calls_and_results(call, number)
  local asked = call.reply_event ~= nil
  local when = query.run:wall_ns(call.start_ns, query.segment)
  turn = turn or {}
  steps[number] = {
    step_id = number, source = "agent", timestamp = when and export.date(when),
    message = reply.text or "", model_name = asked and (reply.model or call.model) or nil,
    tool_calls = calls, observation = observation, llm_call_count = asked and 1 or 0,
    reasoning_content = reply.reasoning ~= "" and reply.reasoning or nil,
    metrics = asked and {
      prompt_tokens = turn.input_tokens, completion_tokens = turn.output_tokens,
      cached_tokens = turn.cached_tokens, cost_usd = turn.cost_usd,
      extra = { energy = energy_of(turn), ttft_s = turn.ttft_s, decode_s = turn.decode_s,
                attempts = turn.attempts, reasoning_tokens = turn.reasoning_tokens,
                finish_reason = turn.finish_reason } } or nil,
    extra = { start_ns = call.start_ns, end_ns = call.end_ns, error = turn.error,
              energy = not asked and energy_of(turn) or nil },
  }
end

--- What the agent sent besides the model's replies and the tools' results.
local function sent_steps(steps, call, from)
  for i = from, #call.messages do
    local message = call.messages[i]
    if message.role == "system" or message.role == "user" or message.role == "developer" then
      steps[#steps + 1] = { step_id = #steps + 1,
                            source = message.role == "user" and "user" or "system",
                            message = export.text_of(message.content) }
    end
  end
end

local function steps_of(query)
  local steps, sent = json.list {}, 0
  local tools
  for k, call in ipairs(query:calls()) do
    sent_steps(steps, call, math.min(sent, #call.messages) + 1)
    sent, tools = #call.messages, tools or call.request.tools
    agent_step(steps, query, call, query.turns and query.turns[k])
  end
  if #steps == 0 then -- no events, or no turn: what is known of it
    steps[1] = { step_id = 1, source = "user", message = query.query_text or "" }
  end
  return steps, tools
end

return {
  name   = "atif",
  about  = "Harbor trajectories (ATIF), a JSON document per query",
  loses  = "Spans within a turn, power readings, files, images and audio (named in the text).",
  writes = "folder",
  input  = { { "version", "string", "schema version", default = "1.7", enum = { "1.7", "1.8" } } },

  begin = function(out) out.count = 0 end,

  query = function(out, query, run)
    local manifest = run.manifest or {}
    local config, program = manifest.config or {}, manifest.program or {}
    local steps, tools = steps_of(query)
    out.count = out.count + 1
    local id = tostring(query.query_id):gsub("[^%w-]", "_"):sub(1, 80)
    out:file(("%05d_%s.json"):format(out.count, id))
    out:json {
      schema_version = "ATIF-v" .. out.settings.version, session_id = run.name,
      trajectory_id = ("%s/%s/%d"):format(run.name, query.query_id, query.epoch or 0),
      agent = { name = config.agent or "unknown", version = program.version or "unknown",
                model_name = query.model, tool_definitions = tools },
      steps = steps,
      final_metrics = {
        total_prompt_tokens = query.total_input_tokens,
        total_completion_tokens = query.total_output_tokens,
        total_cost_usd = query.total_cost_usd, total_steps = #steps,
        extra = { energy = energy_of(query), energy_before = energy_of(query, "energy_before"),
                  wall_clock_s = query.total_wall_clock_s },
      },
      extra = { outcome = query.outcome, error = query.error, answer = query.answer,
                is_resolved = query.is_resolved, redacted = run.redacted },
    }
  end,
}
