--- ipw.sessions: how programs name their sessions in requests, the strongest first.
--
-- A row names a header (`session`), or a member of the body (`body`, with dots).  `agent` and `parent`
-- are headers that name an agent inside of the session, and the one that started it.  `threads`: the
-- main agent has an id as well, and no parent.  The first row decides for which the request has a
-- session's name; after a row with `trace` the next such row names the agent.  Names of headers have no
-- case.

return {
  { session = "traceparent", trace = true },
  { session = "x-dynamo-session-id", parent = "x-dynamo-parent-session-id" },
  { session = "x-claude-code-session-id", agent = "x-claude-code-agent-id", parent = "x-claude-code-parent-agent-id" },
  -- Codex: an agent is a thread of its own; session-id is that of the first thread.
  { session = "session-id", agent = "thread-id", parent = "x-codex-parent-thread-id", threads = true },
  { session = "session_id", agent = "thread_id", parent = "x-codex-parent-thread-id", threads = true },
  { session = "thread-id", parent = "x-codex-parent-thread-id" },
  { session = "x-session-id", parent = "x-parent-session-id" },
  { session = "x-opencode-session" },
  { session = "x-session-affinity" },
  { session = "x-deepseek-harness-session-id", parent = "x-deepseek-harness-parent-session-id" },
  { session = "x-litellm-trace-id" },
  { session = "helicone-session-id" },
  { body = "metadata.session_id" },
  { body = "metadata.user_id" },
  { body = "litellm_session_id" },
  { body = "prompt_cache_key" },
  { body = "conversation" },
  { body = "user" },
}
