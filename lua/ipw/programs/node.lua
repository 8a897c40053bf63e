--- A script for Node with an official SDK, Vercel's ai, or plain fetch.
return require "ipw.program" {
  name    = "node",
  about   = "A Node script with the openai or @anthropic-ai SDK, or Vercel's ai.",
  command = { "node" },
}
