--- ipw.outcome: how a query ended, by the word in its trace.
local outcome = {}

local stops = { interrupted = true, server_lost = true, unfinished = true }

--- Whether the end of the run cut the query short (in C: ipw_outcome_is_stop()).
---@param word string?
---@return boolean
function outcome.is_stop(word) return word ~= nil and (stops[word] or word:find "^run_" ~= nil) end

return outcome
