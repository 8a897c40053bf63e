--- How well token counts predict a query's joules: each task is predicted by a fit that did not see it.
local analyze = require "ipw.analyze"
local stats   = require "ipw.stats"

local FOLDS = 10

--- Tasks in the order of their first query, shared out to the folds in turn.
local function fold_of(rows)
  local number, n = {}, 0
  for _, row in ipairs(rows) do
    if not number[row.id] then
      number[row.id], n = n % FOLDS, n + 1
    end
  end
  return number, n
end

local function fit_without(fold, rows, folds)
  local y, input, output = {}, {}, {}
  for _, row in ipairs(rows) do
    if folds[row.id] ~= fold then y[#y + 1], input[#input + 1], output[#output + 1] = row.j, row.input, row.output end
  end
  return stats.fit(y, { input, output }, { intercept = true })
end

return {
  name  = "prediction",
  about = "joules predicted from tokens, against measured: cross-validated by task",

  run = function(run)
    local rows = {}
    for _, row in ipairs(run.rows) do
      local j = analyze.joules(run, row)
      if j and row.input and row.output then
        rows[#rows + 1] = { id = row.id, j = j, input = row.input, output = row.output }
      end
    end
    local folds, tasks = fold_of(rows)
    local result = { count = #rows, tasks = tasks, points = {} }
    if tasks < 5 then
      result.why = "fewer than 5 tasks with joules and tokens"
      return result, { "not known: " .. result.why }
    end
    local fits, errors, squares, total = {}, {}, 0.0, 0.0
    local measured = {}
    for i, row in ipairs(rows) do measured[i] = row.j end
    local mean = stats.mean(measured)
    for _, row in ipairs(rows) do
      local fold = folds[row.id]
      if fits[fold] == nil then fits[fold] = fit_without(fold, rows, folds) or false end
      local c = fits[fold] and fits[fold].coefficients
      if c then
        local predicted = c[1].value * row.input + c[2].value * row.output + c[3].value
        result.points[#result.points + 1] = { query_id = row.id, measured = row.j, predicted = predicted }
        if row.j > 0 then errors[#errors + 1] = math.abs(predicted - row.j) / row.j end
        squares, total = squares + (row.j - predicted) ^ 2, total + (row.j - mean) ^ 2
      end
    end
    if #errors == 0 then
      result.why = "the token counts do not vary"
      return result, { "not known: " .. result.why }
    end
    result.median_relative_error, result.p90_relative_error = stats.quantile(errors, 0.5), stats.quantile(errors, 0.9)
    result.r2 = total > 0 and 1 - squares / total or nil
    return result,
      { ("half of %d queries are predicted within %.1f %%, nine of ten within %.1f %%; r2 %s"):format(#errors,
      100 * result.median_relative_error, 100 * result.p90_relative_error, analyze.text(result.r2)) }
  end,
}
