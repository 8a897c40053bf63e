---@meta
-- The tables that the library takes and gives. Written by hand; scripts/lua-docs puts them into docs/lua.md.

---@class ipw.ChatRequest What llm.chat takes. A missing field comes from the command line, else from the server.
---@field messages table[] the thread, at least one message
---@field tools? userdata|table[] kit.schemas, or a list of your own
---@field tool_choice? string|table "auto", "none", "required", or a tool's
---@field model? string another model of the same server
---@field sub_model? boolean true: the model and server of --sub-model and --sub-url, else the run's
---@field temperature? number
---@field top_p? number
---@field seed? integer
---@field max_tokens? integer of the reply
---@field force_output_tokens? integer exact length of the reply (llama.cpp, vLLM, SGLang)
---@field send_at? number when to send it, in seconds of ipw.now()
---@field stop? string|string[]
---@field response_format? table a JSON schema, as the server takes it
---@field extra? table further members of the request's body
---@field seal? boolean true: reply.message is sealed (json.seal)
---@field on_text? fun(piece: string, kind: "text"|"reasoning"|"again") gets the reply piece by piece; "again": it is repeated, earlier pieces do not count; cannot wait

---@class ipw.Reply What llm.chat returns.
---@field text string
---@field reasoning string
---@field calls {id: string, name: string, arguments: string, broken: boolean?}[] the tool calls; arguments are JSON text (broken: not an object; the message has {})
---@field message table|userdata for the thread
---@field finish string the server's word: "stop", "length", "tool_calls", ...
---@field model string? as the server named it
---@field streamed boolean false: it came in one piece
---@field usage {input: integer?, output: integer?, cached: integer?, reasoning: integer?} tokens, as the server counted

---@class ipw.Error What llm.chat and other functions raise; tostring() gives the message.
---@field code string "network", "timeout", "http", "context_full", "limit", "cancelled", ...
---@field message string
---@field status integer? of HTTP
---@field retryable boolean

---@class ipw.Tool What a tool's file returns.
---@field name string letters, digits, '_' and '-'
---@field about string what the model reads
---@field input? table[] { name, type, what it is, optional=, default=, enum=, min=, max=, items= } each
---@field needs? string[] "proc", "http", "search"
---@field serial? boolean it changes something: never in parallel with another call
---@field effects? string what a call changes or reaches besides its result; "none"
---@field seconds? number a call that takes longer ends with "timeout" (a tool with a file of its own)
---@field retries? integer how often a call is repeated after nil, reason, true; or after an error {retryable=true}
---@field run fun(args: table, ctx: ipw.Context): any, string?, boolean? text or a table; or nil and a reason

---@class ipw.Context What a tool's run gets besides its arguments.
---@field tool string its name
---@field workdir string? the query's folder

---@class ipw.Agent What an agent's file returns.
---@field name? string
---@field about? string
---@field defaults? table of cfg: max_turns, temperature, tools, and your own
---@field run fun(query: ipw.Query, cfg: table): any, string? the answer; or { answer =, why =, source = }; or nil and a word

---@class ipw.Query What an agent's run gets.
---@field id string
---@field prompt string
---@field system? string
---@field level? string
---@field files {name: string}[] in the query's folder
---@field metadata? table

---@class ipw.WebRequest What http.request takes.
---@field url string
---@field method? string GET, or POST with a body
---@field headers? table<string, string>
---@field body? string
---@field seconds? number for everything, redirects included (60)
---@field max_bytes? integer|string of the body ("10M")
---@field redirects? integer at most (5); 0: none is followed

---@class ipw.Response What the http functions return.
---@field status integer
---@field body string
---@field url string the last one
---@field type string its Content-Type
---@field location? string where a redirect that was not followed leads
---@field headers table<string, string> names in small letters

---@class ipw.Budget What ipw.budget gives: what is left of the limits. nil: no limit.
---@field tokens_left? integer
---@field turns_left? integer
---@field seconds_left? number
---@field joules_left? number
---@field usd_left? number

---@class ipw.Energy What ipw.energy gives: joules of the query so far; bounds are gpu_lo_j, gpu_hi_j, ... nil: unknown.
---@field gpu_j? number
---@field gpu_lo_j? number
---@field gpu_hi_j? number
---@field cpu_j? number
---@field cpu_lo_j? number
---@field cpu_hi_j? number
---@field dram_j? number
---@field dram_lo_j? number
---@field dram_hi_j? number
---@field machine_j? number a meter of the whole machine: contains the others
---@field machine_lo_j? number
---@field machine_hi_j? number
---@field until_s? number seconds of the query that they cover
---@field provenance? string of the least certain value: "measured", "interpolated", "distributed", "estimated"
