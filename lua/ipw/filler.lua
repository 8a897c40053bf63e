--- ipw.filler: texts of a known number of tokens, for prompts of which only the length was recorded.
local filler = {}

-- In common vocabularies each of these is one token, with the space before it.
local WORDS <const> = {}
for word in ([[the of and to in is that for it as was with be by on not he his but at are this have from or had an
  they which one you were her all she there would their we him been has when who will more no if out so said what up its
  about into than them can only other new some could]]):gmatch "%S+" do WORDS[#WORDS + 1] = " " .. word end

local BLOCK <const>, PHRASE <const>, PHRASES <const> = 512, 16, 1024

local function draw(state) -- splitmix64
  state = state + 0x9E3779B97F4A7C15
  local z = state
  z = (z ~ z >> 30) * 0xBF58476D1CE4E5B9
  z = (z ~ z >> 27) * 0x94D049BB133111EB
  return z ~ z >> 31, state
end

--- Words are drawn by the phrase: a prompt has tens of thousands of them, and many prompts are due each second.
local phrases
local function make_phrases()
  local state = 1
  phrases = {}
  for i = 1, PHRASES do
    local words = {}
    for k = 1, PHRASE do
      local bits
      bits, state = draw(state)
      words[k] = WORDS[(bits & 63) + 1]
    end
    phrases[i] = table.concat(words)
  end
end

local function put_words(out, state, n)
  local bits
  for _ = 1, n // PHRASE do
    bits, state = draw(state)
    out[#out + 1] = phrases[(bits & PHRASES - 1) + 1]
  end
  for _ = 1, n % PHRASE do
    bits, state = draw(state)
    out[#out + 1] = WORDS[(bits & 63) + 1]
  end
end

local function number_of(text)
  local n = 0
  for i = 1, #text do n = (n ~ text:byte(i)) * 0x100000001B3 end
  return n
end

--- A text of `n` tokens. Equal numbers of `blocks` give equal blocks of 512; what is behind them follows from `seed`.
---@param n integer
---@param blocks integer[]?
---@param seed string
---@return string
function filler.text(n, blocks, seed)
  local out, left = {}, math.max(n, 1)
  if not phrases then make_phrases() end
  for _, block in ipairs(blocks or {}) do
    if left <= 0 then break end
    put_words(out, block * 2 + 1, math.min(left, BLOCK))
    left = left - math.min(left, BLOCK)
  end
  put_words(out, ~number_of(seed), left)
  return table.concat(out)
end

return filler
