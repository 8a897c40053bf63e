--- One query per line, as in traces.jsonl: the complete record of a query.
return {
  name  = "jsonl",
  about = "one query per line, as in traces.jsonl",
  loses = "Events and power readings.",
  lines_only = true,
}
