--- ipw.hub: names of the hub's datasets, and which files a configuration and a split are.
local hub = require "ipw.hub"
local test = require "ipw.test"

local NAMES = {
  { "hf:openai/gsm8k", { repo = "openai/gsm8k" } },
  { "hf:openai/gsm8k:main", { repo = "openai/gsm8k", config = "main" } },
  { "hf:a/b:c@v1.0/test", { repo = "a/b", config = "c", revision = "v1.0", split = "test" } },
  { "hf:a/b@refs/convert/parquet/train", { repo = "a/b", revision = "refs/convert/parquet", split = "train" } },
  { "hf:a/b/validation", { repo = "a/b", split = "validation" } },
  { "hf:a.b-c/d_e.f", { repo = "a.b-c/d_e.f" } },
}
local NO_NAMES = { "hf:", "hf:a", "hf:a/", "hf:a/b/", "hf:a/b:", "hf:a/b@", "hf:a/b/c/d", "hf:../b", "hf:a/..",
  "hf:a/b@..",
  "hf:a/b c", "hf:a//b", "hf:/a/b", "a/b", "hf:a/b:c:d" }

local GSM = { "README.md", "main/test-00000-of-00001.parquet", "main/train-00000-of-00001.parquet",
  "socratic/test-00000-of-00001.parquet", "socratic/train-00000-of-00001.parquet" }
local CHOICES = {
  { GSM, "main", "test", { "main/test-00000-of-00001.parquet" } },
  { GSM, "socratic", nil, { "socratic/test-00000-of-00001.parquet" } },
  { GSM, "absent", nil, nil, "no file of the configuration 'absent'" },
  { GSM, "main", "dev", nil, "no file of the split 'dev'; there are: test, train" },
  { { "test.jsonl", "README.md" }, nil, "test", { "test.jsonl" } },
  { { "data-00000-of-00002.arrow", "data-00001-of-00002.arrow", "dataset_info.json", "state.json" }, nil, nil,
    { "data-00000-of-00002.arrow", "data-00001-of-00002.arrow" } },
  { { "rows.csv" }, nil, "train", { "rows.csv" } },
  { { "rows.csv" }, nil, "test", nil, "no file of the split 'test'" },
  { { "a.csv", "a.parquet" }, nil, nil, { "a.parquet" } },
  { { "latest.csv", "test.csv" }, nil, "test", { "test.csv" } },
  { { "gpqa_diamond.csv", "gpqa_main.csv", "gpqa_extended.csv" }, "gpqa_diamond", "train", { "gpqa_diamond.csv" } },
  { { "README.md", "dataset_infos.json" }, nil, nil, nil, "no file with rows" },
  { { "data/TEST.PARQUET" }, nil, nil, { "data/TEST.PARQUET" } },
  { { "validation/x.jsonl", "train/x.jsonl" }, nil, nil, { "validation/x.jsonl" } },
}

return {
  { "names", function()
    for _, case in ipairs(NAMES) do
      local spec, why = hub.parse(case[1])
      if not spec then error(why, 0) end
      case[2].text = case[1]
      test.equal(spec, case[2], case[1])
    end
  end },
  { "what is no name says what is expected", function()
    for _, text in ipairs(NO_NAMES) do
      local spec, why = hub.parse(text)
      test.equal(spec, nil, text)
      test.ok(why:find("hf:OWNER/NAME[:CONFIG][@REVISION][/SPLIT]", 1, true), why)
    end
  end },
  { "files of a configuration and a split", function()
    for i, case in ipairs(CHOICES) do
      local chosen, why = hub.choose(case[1], case[2], case[3])
      test.equal(chosen, case[4], "case " .. i)
      test.equal(why, case[5], "case " .. i)
    end
  end },
  { "files by what the README declares", function()
    local paths = { "README.md", "a/x.csv", "a/deep/y.csv", "b/train-0.parquet", "b/train-0.jsonl", "rest/z.csv" }
    local readme = [[
---
license: mit
configs:
- config_name: one
  data_files:
  - split: held_out
    path: "a/*.csv"
  - split: train   # the rest
    path:
      - b/train-*
      - 'rest/?.csv'
- config_name: deep
  default: true
  data_files: a/**/*.csv
- config_name: map
  data_files:
    train: [b/*.jsonl, rest/*.csv]
    test: a/x.csv
tags:
- x
---
# A dataset
configs:
]]
    local cases = {
      { "one", nil, { "b/train-0.parquet" } }, { "one", "held_out", { "a/x.csv" } },
      { nil, nil, { "a/deep/y.csv", "a/x.csv" } }, { "map", nil, { "a/x.csv" } },
      { "map", "train", { "b/train-0.jsonl" } },
      { "one", "test", nil, "the configuration 'one' has no split 'test'; there are: held_out, train" },
      { "rest", nil, { "rest/z.csv" } }, -- not declared: by its word in the paths
    }
    for i, case in ipairs(cases) do
      local chosen, why = hub.choose(paths, case[1], case[2], readme)
      if chosen then table.sort(chosen) end
      test.equal(chosen, case[3], "case " .. i)
      test.equal(why, case[4], "case " .. i)
    end
    local _, why = hub.choose({ "x.csv" }, "deep", nil, readme)
    test.equal(why, "README.md declares a/**/*.csv for the split 'train', and no such file is there")
  end },
  { "a README that declares nothing, or more than is read, is as if it were not there", function()
    local paths = { "main/test.csv", "other/test.csv" }
    for _, readme in ipairs { "", "# text", "---\nlicense: mit\n---\n",
      "---\nconfigs:\n- config_name: main\n  data_files: {a: b}\n---\n",
      "---\nconfigs:\n- &x\n  y: 1\n---\n", "---\nconfigs:\n- config_name: main\n---\n", "---\nconfigs: [\n---\n" } do
      test.equal(hub.choose(paths, "main", "test", readme), { "main/test.csv" }, readme)
    end
  end },
  { "a commit", function()
    test.equal(hub.is_commit(("a1"):rep(20)), true)
    test.equal(hub.is_commit "main", false)
    test.equal(hub.is_commit(("A1"):rep(20)), false)
  end },
}
