--- BrowseComp: questions that take long browsing.  Question and answer are stored encrypted, so that no
--- crawler reads them: base64 of the text, XORed with the SHA-256 of the row's canary, over and over.
--- They are decrypted in memory; the files of a run hold them as they hold any prompt, so do not publish
--- those (or run with --no-content).

local core  = require "ipw.core.data"
local forms = require "ipw.judge_forms"
local named = require "ipw.named"

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function from_base64(text)
  local bits, n, out = 0, 0, {}
  for digit in text:gmatch "[%w+/]" do
    bits, n = bits << 6 | (DIGITS:find(digit, 1, true) - 1), n + 6
    if n >= 8 then
      n = n - 8
      out[#out + 1] = string.char(bits >> n & 255)
      bits = bits & (1 << n) - 1
    end
  end
  return table.concat(out)
end

local function decrypt(text, canary)
  local key, out = core.sha256(canary):gsub("%x%x", function(hex) return string.char(tonumber(hex, 16)) end), {}
  local bytes = from_base64(text)
  for i = 1, #bytes do out[i] = string.char(bytes:byte(i) ~ key:byte((i - 1) % #key + 1)) end
  return table.concat(out)
end

return named {
  name = "browsecomp", about = "Questions that take long browsing, 1266, stored encrypted.",
  repo = "smolagents/browse_comp", split = "test",
  rule = "judge", judge = forms.extracted,
  map = function(row)
    return { question = decrypt(row.problem, row.canary), answer = decrypt(row.answer, row.canary),
             subject = row.problem_topic, columns = { canary = row.canary } }
  end,
}
