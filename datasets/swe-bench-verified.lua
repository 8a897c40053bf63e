--- SWE-bench Verified: issues of Python projects; the answer is a patch.  The official harness scores it,
--- in containers; `ipw-agent export --format swe-bench` writes its predictions file.

local named = require "ipw.named"

local TASK = "Repository %s at commit %s.\n\n%s\n\nReply with a patch in unified diff form."

return named {
  name = "swe-bench-verified", about = "500 issues of Python projects; the official harness scores the patches.",
  repo = "SWE-bench/SWE-bench_Verified", split = "test",
  map = function(row)
    return { id = row.instance_id, question = TASK:format(row.repo, row.base_commit, row.problem_statement),
             answer = row.patch, subject = row.repo, level = row.difficulty,
             metadata = { repo = row.repo, base_commit = row.base_commit, version = row.version } }
  end,
  extract = function(text)
    local patch = text:match "```%w*\n(.-)```" or text
    return patch:find "%S" and patch or nil, "patch"
  end,
  score = function() return nil, { rule = "harness", unscorable_reason = "needs_the_official_harness" } end,
}
