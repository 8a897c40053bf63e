--- ipw.report.lags_text: what `replay --mode workload` prints of replay.json.
local screen = require "ipw.screen"

local lags_text = {}

--- p50, p90 and p99 in milliseconds.
local function ms(spread) return 1e3 * spread.p50, 1e3 * spread.p90, 1e3 * spread.p99 end

---@param doc table replay.json
---@return string
function lags_text.text(doc)
  local out = { ("workload of %s, %s loop%s: %d of %d requests sent%s%s"):format(screen.cell(doc.of), doc.schedule,
    doc.speed ~= 1 and (", speed %g"):format(doc.speed) or "", doc.turns, doc.turns_recorded,
    doc.failed > 0 and (", %d failed"):format(doc.failed) or "", doc.output_length_known > 0
      and (", %d of %d replies as long as saved"):format(doc.output_length_kept, doc.output_length_known) or "") }
  if doc.turns > 0 then
    local p50, p90, p99 = ms(doc.lag_absolute_s)
    out[2] = ("send lag p50 %.2f p90 %.2f p99 %.2f ms (anchored %.2f %.2f %.2f)"):format(p50, p90, p99,
      ms(doc.lag_anchored_s))
  end
  if doc.late > 0 then
    out[#out + 1] = ("%d requests waited for the reply before them, past their time (p50 %.3g s)"):format(doc.late,
      doc.late_s.p50)
  end
  if doc.degraded then
    out[#out + 1] = ("DEGRADED: requests were sent too late for this to be the workload (p99 over %.3g s)"):format(
      doc.max_lag_s)
  end
  return table.concat(out, "\n") .. "\n"
end

return lags_text
