--- Recorded requests as tasks: of a saved run, of `export --format requests`, or of a file in the Mooncake format.
--- --data-dir names the run's folder or the file. The agent `workload` sends them, with their gaps or, with
--- `--arrivals recorded`, at their times.
local requests = require "ipw.requests"

--- The same name for all of a recording's queries would be no name: those of a later epoch have one too.
local function record_of(query)
  return {
    id = query.id, epoch = query.epoch > 0 and query.epoch or nil, index = query.index, at_s = query.at_s,
    question = query.prompt,
    given = ('{"at_s":%.17g,"requests":%s}'):format(query.at_s, query.requests),
  }
end

return {
  name = "requests", about = "Recorded requests of a saved run or a Mooncake file (--data-dir).",
  unscored = "recorded requests: replies are not scored",

  load = function(opts)
    if not opts.data_dir then
      return nil, "the dataset requests needs --data-dir: a saved run, or a file of requests"
    end
    local ok, list = pcall(requests.read, 1, opts.data_dir, opts.query)
    if not ok then
      if type(list) == "table" and list.text then return nil, list.text end
      error(list, 0)
    end
    for i, query in ipairs(list) do list[i] = record_of(query) end
    return list, { source = opts.data_dir }
  end,
}
