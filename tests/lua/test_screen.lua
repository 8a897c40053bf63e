--- ipw.screen: widths in characters, at the edge where a text just fits and one character beyond.
local screen = require "ipw.screen"
local test = require "ipw.test"

return {
  { "a text is put on one line, and cut where it is longer", function()
    test.equal(screen.line "a\nb\27[1m", "a b [1m")
    test.equal(screen.line("größe", 5), "größe")
    test.equal(screen.line("größer", 5), "größ…")
    test.equal(screen.line("", 5), "")
    test.equal(screen.line("\xff\xfeabc", 3), "\xff\xfe…")
  end },
  { "a cell is as wide as it says, whatever the bytes", function()
    test.equal(screen.cell("ä", 3) .. "|", "ä  |")
    test.equal(screen.cell("four", 3) .. "|", "four|")
  end },
  { "words are broken at the width, under the text", function()
    test.equal(screen.wrapped("ab ", "cd ef gh ij kl mn op qr st", 24), "ab cd ef gh ij kl mn op\n   qr st")
    test.equal(screen.wrapped("ab ", "cd ef gh ij kl mn op qr st", 23), "ab cd ef gh ij kl mn op qr st")
    test.equal(screen.wrapped("ab ", "cd ef", 0), "ab cd ef")
    test.equal(screen.wrapped("ab ", ("x"):rep(40) .. " y", 30), "ab " .. ("x"):rep(40) .. "\n   y")
  end },
  { "the first sentence", function()
    test.equal(screen.sentence "Does a thing. And another.", "Does a thing.")
    test.equal(screen.sentence " version 1.2 of\n  it", "version 1.2 of it")
  end },
}
