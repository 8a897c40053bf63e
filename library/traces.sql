-- The columns of traces.jsonl (docs/trace-format.md) for DuckDB, so that a query means the same on every run: a reader
-- that guesses takes a column that is null throughout for JSON, and the next run's for a number.
--
--   duckdb -cmd ".read library/traces.sql" -c "SELECT query_id, energy.gpu.joules FROM traces('runs/*/traces.jsonl')"
--
-- traces(path): a row a query. turns(path): a row a turn. spans(path): a row a span.
-- In pandas: duckdb.execute(open("library/traces.sql").read()), then duckdb.sql("SELECT * FROM traces('...')").df().
-- A key that a line leaves out is null here: coverage is then 1 where joules are known, samples 0, the provenance of
-- joules that of the turn or the query around them, and what a device has not is as in its domain
-- (docs/trace-format.md).
-- Keys that are not named here are left out; attempts.jsonl and warmup.jsonl have the same shape.

CREATE OR REPLACE TYPE ipw_figure AS STRUCT(joules DOUBLE, provenance VARCHAR, lo DOUBLE, hi DOUBLE, u DOUBLE,
  mean_w DOUBLE, peak_w DOUBLE, coverage DOUBLE, samples BIGINT, split_fraction DOUBLE, reason VARCHAR,
  sources VARCHAR[], devices JSON, estimate JSON);
CREATE OR REPLACE TYPE ipw_energy AS STRUCT(cpu ipw_figure, dram ipw_figure, gpu ipw_figure, machine ipw_figure);
CREATE OR REPLACE TYPE ipw_span AS STRUCT(kind VARCHAR, name VARCHAR, id BIGINT, attempt BIGINT, start_s DOUBLE,
  end_s DOUBLE, outcome VARCHAR, error VARCHAR, result_bytes BIGINT, argument_bytes BIGINT, cut_bytes BIGINT,
  child_cpu_s DOUBLE, child_peak_bytes BIGINT, child_provenance VARCHAR, energy ipw_energy);
CREATE OR REPLACE TYPE ipw_turn AS STRUCT(turn_index BIGINT, start_s DOUBLE, end_s DOUBLE, wall_clock_s DOUBLE,
  model VARCHAR, endpoint VARCHAR, attempts BIGINT, finish_reason VARCHAR, error VARCHAR, input_tokens BIGINT,
  output_tokens BIGINT, cached_tokens BIGINT, reasoning_tokens BIGINT, tokens_estimated BOOLEAN,
  tool_result_tokens BIGINT, tools_called VARCHAR[], tool_latencies_s MAP(VARCHAR, DOUBLE), has_parallel_tools BOOLEAN,
  inference_s DOUBLE, ttft_s DOUBLE, ttfo_s DOUBLE, ttst_s DOUBLE, decode_s DOUBLE, itl_mean_s DOUBLE,
  chunk_gap_p50_s DOUBLE, chunk_gap_p90_s DOUBLE, chunk_gap_p99_s DOUBLE, latency_content_s DOUBLE,
  latency_close_s DOUBLE, headers_s DOUBLE, connect_s DOUBLE, server_queue_s DOUBLE, server_prefill_s DOUBLE,
  server_decode_s DOUBLE, context_trimmed_bytes BIGINT, agent_s DOUBLE, retry_wait_s DOUBLE, cost_usd DOUBLE,
  cpu_energy_joules DOUBLE,
  dram_energy_joules DOUBLE, gpu_energy_joules DOUBLE, cpu_power_avg_watts DOUBLE, gpu_power_avg_watts DOUBLE,
  peak_watts DOUBLE, shared_device_warning BOOLEAN, energy ipw_energy, spans ipw_span[]);

CREATE OR REPLACE TYPE ipw_joules AS STRUCT(cpu DOUBLE, dram DOUBLE, gpu DOUBLE, machine DOUBLE);
CREATE OR REPLACE TYPE ipw_part AS STRUCT(part VARCHAR, name VARCHAR, calls BIGINT, seconds DOUBLE, joules ipw_joules,
  waste_joules ipw_joules, bounds JSON);

CREATE OR REPLACE MACRO traces(path) AS TABLE SELECT * FROM read_json(path, format = 'newline_delimited',
  filename = true, maximum_object_size = 536870912, columns = {
    query_id: 'VARCHAR', query_index: 'BIGINT', epoch: 'BIGINT', segment: 'BIGINT', schema_version: 'BIGINT',
    workload_type: 'VARCHAR', model: 'VARCHAR', outcome: 'VARCHAR', error: 'VARCHAR', superseded: 'VARCHAR',
    query_text: 'VARCHAR', response_text: 'VARCHAR', answer: 'VARCHAR', answer_source: 'VARCHAR',
    started_at: 'TIMESTAMP', start_ns: 'BIGINT', end_ns: 'BIGINT', total_wall_clock_s: 'DOUBLE',
    agent_before_s: 'DOUBLE', completed: 'BOOLEAN', timed_out: 'BOOLEAN', is_resolved: 'BOOLEAN',
    unscorable_reason: 'VARCHAR', accuracy_score: 'DOUBLE', metadata: 'JSON', score_metadata: 'JSON',
    num_turns: 'BIGINT', n_retries: 'BIGINT', n_malformed: 'BIGINT', total_tool_calls: 'BIGINT',
    total_input_tokens: 'BIGINT', total_output_tokens: 'BIGINT', total_tokens: 'BIGINT', total_cost_usd: 'DOUBLE',
    throughput_tokens_per_sec: 'DOUBLE', energy_per_output_token_joules: 'DOUBLE',
    query_cpu_energy_joules: 'DOUBLE', query_gpu_energy_joules: 'DOUBLE', query_cpu_power_avg_watts: 'DOUBLE',
    query_gpu_power_avg_watts: 'DOUBLE', query_mbu_avg_pct: 'DOUBLE', query_mbu_max_pct: 'DOUBLE',
    lm_energy_measurable: 'BOOLEAN', shared_device_warning: 'BOOLEAN', remote_domains: 'VARCHAR[]',
    lua_cpu_s: 'DOUBLE', lua_peak_bytes: 'BIGINT', accounts: 'JSON', parts: 'ipw_part[]', metrics: 'JSON',
    hardware_utilization: 'JSON', memory_metrics: 'JSON', power_metrics: 'JSON', temperature_metrics: 'JSON',
    energy: 'ipw_energy', energy_before: 'ipw_energy', spans_before: 'ipw_span[]', turns: 'ipw_turn[]' });

CREATE OR REPLACE MACRO turns(path) AS TABLE
  SELECT filename, query_id, epoch, unnest(turns, max_depth := 2) FROM traces(path);

CREATE OR REPLACE MACRO spans(path) AS TABLE
  SELECT filename, query_id, epoch, turn_index, unnest(spans, max_depth := 2) FROM turns(path)
  UNION ALL BY NAME
  SELECT filename, query_id, epoch, NULL::BIGINT AS turn_index, unnest(spans_before, max_depth := 2) FROM traces(path);
