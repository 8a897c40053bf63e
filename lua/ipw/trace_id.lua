--- ipw.trace_id: the ids of a run and its queries in a trace of OpenTelemetry.
--
-- They follow from the run's folder and time, so that an export made later has the ids that a server of
-- tools was told during the run.

local trace_id = {}

--- 64 bits that follow from a text (FNV-1a).
function trace_id.hash(text)
  local h = -3750763034362895579
  for i = 1, #text do h = (h ~ text:byte(i)) * 1099511628211 end
  return h ~ (h >> 29)
end

--- The trace of a run: 32 hexadecimal digits; and what it was made of.
function trace_id.of_run(name, wall_ns)
  local key = ("%s/%s"):format(name, wall_ns)
  local one, two = trace_id.hash(key), trace_id.hash(key .. "#2")
  return ("%016x%016x"):format(one == 0 and 1 or one, two == 0 and 1 or two), key
end

--- The span of a query in the trace of its run.
function trace_id.of_query(trace, session, number, id)
  return trace_id.hash(("%s/%d/%s/%s"):format(trace, session, number, id))
end

--- The running query as the parent of what a server does for it (W3C Trace Context); nil outside of a run.
function trace_id.traceparent()
  local folder, wall_ns, session, number, id = require("ipw.core.run").trace()
  if not folder then return nil end
  local trace = trace_id.of_run(folder:match "([^/]+)/*$" or folder, wall_ns)
  return ("00-%s-%016x-01"):format(trace, trace_id.of_query(trace, session, number, id))
end

return trace_id
