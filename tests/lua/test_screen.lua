--- ipw.screen: widths in columns, at the edge where a text just fits and one character beyond.
local screen = require "ipw.screen"
local test = require "ipw.test"

return {
  { "a text is put on one line, and cut where it is longer", function()
    test.equal(screen.fit "a\nb\27[1m", "a b\\u{1b}[1m")
    test.equal(screen.fit("größe", 5), "größe")
    test.equal(screen.fit("größer", 5), "größ…")
    test.equal(screen.fit("", 5), "")
    test.equal(utf8.len(screen.fit("\xff\xfeabc", 3)), 3)
    test.equal(screen.cell("a  b"), "a  b")
  end },
  { "a cell is as wide as it says, whatever the bytes", function()
    test.equal(screen.left("ä", 3) .. "|", "ä  |")
    test.equal(screen.left("four", 3) .. "|", "four|")
    test.equal(screen.left("\xff", 3) .. "|", "\xff  |")
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
