// Makes the files of this folder: the same rows by three writers of Parquet and two of Arrow, over codecs,
// page versions, encodings and row groups.  Run it when a case is added; the files are in git, and the
// tests need none of this.  `zstd` and `lz4` must be on the PATH.
//
//   mkdir /tmp/oracle && cd /tmp/oracle
//   npm install @duckdb/node-api@1.5.6-r.1 parquet-wasm@0.8.0 hyparquet-writer@0.17.0 apache-arrow@21.2.0
//   cp THIS/make.mjs . && node make.mjs THIS
//
// rows.jsonl and flat.jsonl are written here from the values themselves; no reader has a part in them.
// cases.tsv names for each file the rows that it holds.
import { DuckDBInstance } from '@duckdb/node-api';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import * as arrow from 'apache-arrow';
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const wasm = require('parquet-wasm');
const { parquetWriteBuffer } = await import('hyparquet-writer');

const out = process.argv[2];
const cases = [];
const pack = (tool, args) => (input) => new Uint8Array(execFileSync(tool, args, { input }));
const zstd = pack('zstd', ['-q', '-c', '-19']);

// ---- the rows ----
const N = 24;
const days = ['2024-02-29', '1969-12-31', '1900-03-01', '2000-01-01', '0001-01-01', '9999-12-31'];
const times = ['2024-02-29T12:34:56.789012', '1969-12-31T23:59:59.000001', '1900-03-01T00:00:00'];
const rows = [];
for (let i = 0; i < N; i++) {
  rows.push({
    at: i % 6 == 5 ? null : times[i % 3],
    big: 9007199254740993n + BigInt(i),
    day: days[i % 6],
    grid: i % 5 == 0 ? null : i % 5 == 1 ? [] : [[i], [], i % 5 == 2 ? null : [i + 1, null]],
    id: i,
    kind: ['red', 'green', 'blue'][i % 3],
    name: i % 5 == 4 ? null : `naïve “${i}” \\ "x"\n`,
    note: i % 4 == 3 ? null : { 'Number of steps': i % 4 == 2 ? null : String(i), Steps: 'one\ntwo', more: { deep: i / 2 } },
    ok: i % 4 == 1 ? null : i % 2 == 0,
    parts: i % 6 == 1 ? null : Array.from({ length: i % 3 }, (_, k) => ({ a: i * k, b: k ? null : `p${i}`, tags: k ? null : ['t'] })),
    price: { raw: (i * 1.25 - 3).toFixed(2) },
    score: i % 7 == 3 ? null : i / 4,
    tags: i % 4 == 0 ? null : i % 4 == 1 ? [] : ['a', null, `tag ${i}`].slice(0, i % 4),
    wide: `${i < 12 ? "-" : ""}${Math.abs(2 * i - 23)}23456789012345678.125`,
  });
}
const json = (v) => v === null ? 'null' : typeof v == 'bigint' ? String(v) : Array.isArray(v) ? `[${v.map(json)}]`
  : typeof v != 'object' ? JSON.stringify(v) : 'raw' in v ? v.raw
  : `{${Object.keys(v).map((k) => JSON.stringify(k) + ':' + json(v[k]))}}`;
fs.writeFileSync(path.join(out, 'rows.jsonl'), rows.map((r) => json(r) + '\n').join(''));
const flat = rows.map(({ big, id, kind, name, ok, score }) => ({ big, id, kind, name, ok, score }));
fs.writeFileSync(path.join(out, 'flat.jsonl'), flat.map((r) => json(r) + '\n').join(''));
const put = (name, bytes, of = 'rows.jsonl') => {
  if (bytes) fs.writeFileSync(path.join(out, name), bytes);
  cases.push(`${name}\t${of}`);
};

// ---- DuckDB ----
const db = await (await DuckDBInstance.create(':memory:')).connect();
const types = `"at": 'TIMESTAMP', big: 'BIGINT', day: 'DATE', grid: 'INTEGER[][]', id: 'INTEGER', kind: 'VARCHAR', name: 'VARCHAR',
  note: 'STRUCT("Number of steps" VARCHAR, Steps VARCHAR, more STRUCT(deep DOUBLE))', ok: 'BOOLEAN',
  parts: 'STRUCT(a BIGINT, b VARCHAR, tags VARCHAR[])[]', price: 'DECIMAL(9,2)', score: 'DOUBLE', tags: 'VARCHAR[]', wide: 'DECIMAL(30,3)'`;
await db.run(`CREATE TABLE t AS SELECT * FROM read_json('${out}/rows.jsonl', format = 'newline_delimited', columns = {${types}})`);
const duck = async (name, options, what = 't', of) => {
  await db.run(`COPY ${what} TO '${out}/${name}' (FORMAT parquet, ${options})`);
  put(name, null, of);
};
for (const version of ['V1', 'V2'])
  for (const codec of ['uncompressed', 'snappy', 'zstd', 'gzip', 'lz4_raw'])
    if (version == 'V2' || codec != 'lz4_raw')
      await duck(`duckdb-${version.toLowerCase()}-${codec}.parquet`, `COMPRESSION ${codec}, PARQUET_VERSION ${version}`);
await duck('duckdb-plain.parquet', 'COMPRESSION uncompressed, DICTIONARY_SIZE_LIMIT 1');
await duck('duckdb-brotli.parquet', 'COMPRESSION brotli', '(SELECT id, name FROM t)', '!Brotli');
await duck('duckdb-map.parquet', 'COMPRESSION zstd', `(SELECT 1 AS id, MAP {'a': 1} AS m)`, 'map.jsonl');
await duck('duckdb-interval.parquet', 'COMPRESSION zstd', `(SELECT 1 AS id, INTERVAL 1 DAY AS i)`, "!column 'i': the type INTERVAL");
await duck('duckdb-empty.parquet', 'COMPRESSION zstd', '(SELECT * FROM t WHERE false)', 'empty.jsonl');
fs.writeFileSync(path.join(out, 'empty.jsonl'), '');
fs.writeFileSync(path.join(out, 'map.jsonl'), '{"id":1,"m":[{"key":"a","value":1}]}\n');
const kinds = [
  [`'null'::JSON`, 'null'], [`'{"a": [1, 2.50]}'::JSON`, '{"a":[1,2.5]}'],
  [`'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'::UUID`, '"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"'],
  [`'\\x00\\xFF\\x10'::BLOB`, '{"base64":"AP8Q"}'], [`'text'::BLOB`, '"text"'],
  [`200::UTINYINT`, '200'], [`-100::TINYINT`, '-100'], [`60000::USMALLINT`, '60000'], [`4000000000::UINTEGER`, '4000000000'],
  [`18446744073709551615::UBIGINT`, '18446744073709551615'], [`1.5::FLOAT`, '1.5'], [`'nan'::DOUBLE`, 'null'],
  [`TIME '23:59:59.5'`, '"23:59:59.500000"'], [`TIMESTAMPTZ '2024-01-02 03:04:05+00'`, '"2024-01-02T03:04:05Z"'],
  [`TIMESTAMP_NS '2024-01-02 03:04:05.000000006'`, '"2024-01-02T03:04:05.000000006"'],
  [`TIMESTAMP_MS '2024-01-02 03:04:05.006'`, '"2024-01-02T03:04:05.006"'], [`0.05::DECIMAL(4,2)`, '0.05'], [`-7::DECIMAL(18,0)`, '"-7"'],
  [`'green'::ENUM ('red', 'green')`, '"green"'], [`NULL::INTEGER`, 'null'],
];
await duck('duckdb-types.parquet', 'COMPRESSION uncompressed',
  `(SELECT ${kinds.map(([sql], i) => `${sql} AS c${String(i).padStart(2, '0')}`)})`, 'types.jsonl');
fs.writeFileSync(path.join(out, 'types.jsonl'), `{${kinds.map(([, v], i) => `"c${String(i).padStart(2, '0')}":${v}`)}}\n`);
// Many row groups; the test makes the rows again: id, id % 7 as text, and a null each third row.
await duck('duckdb-groups.parquet', 'COMPRESSION zstd, ROW_GROUP_SIZE 2048',
  `(SELECT range::INTEGER AS id, (range % 7)::VARCHAR AS seven, CASE WHEN range % 3 = 0 THEN NULL ELSE range END AS some FROM range(4100))`, '#4100');

// GAIA's columns, with tasks of our own.
const gaia = path.join(out, 'gaia/2023/validation');
fs.mkdirSync(gaia, { recursive: true });
await db.run(`COPY (SELECT * FROM (VALUES
  ('11111111-aaaa-4aaa-8aaa-000000000001', 'How many legs have three cats?', '1', '12', '', '', {'Steps': '1. Count', 'Number of steps': '1', 'How long did this take?': '1 minute', 'Tools': 'None', 'Number of tools': '0'}),
  ('11111111-aaaa-4aaa-8aaa-000000000002', 'What word stands in the file?', '2', 'heron', '11111111-aaaa-4aaa-8aaa-000000000002.txt', '2023/validation/11111111-aaaa-4aaa-8aaa-000000000002.txt', {'Steps': '1. Read', 'Number of steps': '2', 'How long did this take?': '2 minutes', 'Tools': '1. A text editor', 'Number of tools': '1'}),
  ('11111111-aaaa-4aaa-8aaa-000000000003', 'Name two primes below five.', '3', '2, 3', '', '', NULL))
  AS g(task_id, Question, "Level", "Final answer", file_name, file_path, "Annotator Metadata"))
  TO '${gaia}/metadata.parquet' (FORMAT parquet, COMPRESSION snappy)`);
fs.writeFileSync(path.join(gaia, '11111111-aaaa-4aaa-8aaa-000000000002.txt'), 'heron\n');

// ---- arrow-rs ----
const source = () => wasm.readParquet(new Uint8Array(fs.readFileSync(path.join(out, 'duckdb-v1-zstd.parquet'))));
const { Compression, Encoding, WriterVersion, WriterPropertiesBuilder: Builder } = wasm;
const rust = (name, set) => put(name, wasm.writeParquet(source(), set(new Builder()).build()));
rust('rust-v1-snappy-groups.parquet', (b) => b.setCompression(Compression.SNAPPY).setMaxRowGroupSize(10));
rust('rust-v2-zstd.parquet', (b) => b.setCompression(Compression.ZSTD).setWriterVersion(WriterVersion.V2));
rust('rust-v2-plain.parquet', (b) => b.setCompression(Compression.UNCOMPRESSED).setWriterVersion(WriterVersion.V2).setDictionaryEnabled(false));
rust('rust-v1-gzip-pages.parquet', (b) => b.setCompression(Compression.GZIP).setDataPageSizeLimit(64).setWriteBatchSize(4));
rust('rust-v2-lz4-pages.parquet', (b) => b.setCompression(Compression.LZ4_RAW).setWriterVersion(WriterVersion.V2).setDataPageSizeLimit(64).setWriteBatchSize(4));
rust('rust-delta.parquet', (b) => b.setCompression(Compression.UNCOMPRESSED)
  .setDictionaryEnabled(false).setColumnEncoding('name', Encoding.DELTA_BYTE_ARRAY).setColumnEncoding('kind', Encoding.DELTA_LENGTH_BYTE_ARRAY)
  .setColumnEncoding('big', Encoding.DELTA_BINARY_PACKED).setColumnEncoding('id', Encoding.DELTA_BINARY_PACKED).setColumnEncoding('ok', Encoding.RLE));
put('rust-stream.arrow', source().intoIPCStream());

// ---- hyparquet-writer ----
const column = (name, type, more) => ({ name, type, data: flat.map((r) => r[name]), nullable: true, ...more });
const hy = (name, options, encoding = {}) => put(name, new Uint8Array(parquetWriteBuffer({
  columnData: [column('big', 'INT64', encoding.big), column('id', 'INT32', encoding.id), column('kind', 'STRING', encoding.kind),
    column('name', 'STRING', encoding.name), column('ok', 'BOOLEAN', encoding.ok), column('score', 'DOUBLE', encoding.score)], ...options })), 'flat.jsonl');
hy('hyparquet-snappy-groups.parquet', { rowGroupSize: 7 });
hy('hyparquet-gzip-pages.parquet', { codec: 'GZIP', compressors: { GZIP: (b) => zlib.gzipSync(b) }, pageSize: 40 });
hy('hyparquet-encodings.parquet', { codec: 'ZSTD', compressors: { ZSTD: zstd } }, { big: { encoding: 'DELTA_BINARY_PACKED' },
  id: { encoding: 'DELTA_BINARY_PACKED' }, kind: { encoding: 'DELTA_LENGTH_BYTE_ARRAY' }, name: { encoding: 'DELTA_BYTE_ARRAY' },
  ok: { encoding: 'RLE' }, score: { encoding: 'BYTE_STREAM_SPLIT' } });

// ---- apache-arrow ----
// It writes the packed length before a packed buffer, where Message.fbs wants the unpacked one.
const { RecordBatchWriter } = arrow;
const compress = RecordBatchWriter.prototype._compressBodyBuffers;
RecordBatchWriter.prototype._compressBodyBuffers = function (buffers) {
  const done = compress.call(this, buffers);
  buffers.forEach((b, i) => {
    const prefix = done.buffers[2 * i];
    if (prefix.length && new DataView(prefix.buffer, prefix.byteOffset).getBigInt64(0, true) != -1n)
      new DataView(prefix.buffer, prefix.byteOffset).setBigInt64(0, BigInt(b.byteLength), true);
  });
  return done;
};
arrow.compressionRegistry.set(arrow.CompressionType.ZSTD, { encode: zstd });
arrow.compressionRegistry.set(arrow.CompressionType.LZ4_FRAME, { encode: pack('lz4', ['-q', '-c', '-9']) });
const table = arrow.tableFromIPC(source().intoIPCStream());
const write = (t, form, options) => {
  const W = form == 'file' ? arrow.RecordBatchFileWriter : arrow.RecordBatchStreamWriter;
  return new W(options).writeAll(t.batches).toUint8Array(true);
};
put('js-stream.arrow', write(table, 'stream'));
put('js-file.arrow', write(table, 'file'));
put('js-stream-zstd.arrow', write(table, 'stream', { compressionType: arrow.CompressionType.ZSTD }));
put('js-file-lz4.arrow', write(table, 'file', { compressionType: arrow.CompressionType.LZ4_FRAME }));
const { Field, Schema, Struct, Utf8, LargeUtf8, Dictionary, Int8, Int32, Int64, Float64, Bool, makeData, RecordBatch, vectorFromArray } = arrow;
const vectors = { big: vectorFromArray(flat.map((r) => r.big), new Int64()), id: vectorFromArray(flat.map((r) => r.id), new Int32()),
  kind: vectorFromArray(flat.map((r) => r.kind), new Dictionary(new Utf8(), new Int8())), name: vectorFromArray(flat.map((r) => r.name), new LargeUtf8()),
  ok: vectorFromArray(flat.map((r) => r.ok), new Bool()), score: vectorFromArray(flat.map((r) => r.score), new Float64()) };
const coded = new arrow.Table(vectors);
put('js-dictionary-stream.arrow', write(coded, 'stream'), 'flat.jsonl');
put('js-dictionary-file.arrow', write(coded, 'file', { compressionType: arrow.CompressionType.ZSTD }), 'flat.jsonl');

// One row of each type, and types that are refused.
const A = arrow;
const ints = [['Int8', -5], ['Uint8', 200], ['Int16', -30000], ['Uint16', 60000], ['Uint32', 4000000000], ['Int64', -9007199254740993n], ['Uint64', 18446744073709551615n]];
const arrowKinds = [
  ...ints.map(([t, v]) => [vectorFromArray([v], new A[t]()), String(v)]),
  [vectorFromArray([1.5], new A.Float16()), '1.5'], [vectorFromArray([0.25], new A.Float32()), '0.25'], [vectorFromArray([NaN], new A.Float64()), 'null'],
  [vectorFromArray([Uint8Array.of(0, 255, 16)], new A.Binary()), '{"base64":"AP8Q"}'], [vectorFromArray([new TextEncoder().encode('text')], new A.Binary()), '"text"'],
  [vectorFromArray([Uint8Array.of(1, 2, 255)], new A.FixedSizeBinary(3)), '{"base64":"AQL/"}'],
  [vectorFromArray([new Date('2024-02-29')], new A.DateDay()), '"2024-02-29"'], [vectorFromArray([new Date('1969-12-31')], new A.DateMillisecond()), '"1969-12-31"'],
  [vectorFromArray([86399], new A.TimeSecond()), '"23:59:59"'], [vectorFromArray([1500], new A.TimeMillisecond()), '"00:00:01.500"'],
  [vectorFromArray([1500n], new A.TimeMicrosecond()), '"00:00:00.001500"'], [vectorFromArray([1n], new A.TimeNanosecond()), '"00:00:00.000000001"'],
  [vectorFromArray([new Date('2024-02-29T01:02:03Z')], new A.TimestampSecond('UTC')), '"2024-02-29T01:02:03Z"'],
  [vectorFromArray([new Date('2024-02-29T01:02:03.004Z')], new A.TimestampMillisecond()), '"2024-02-29T01:02:03.004"'],
  [vectorFromArray([Uint32Array.of(12345, 0, 0, 0)], new A.Decimal(2, 10, 128)), '123.45'],
  [vectorFromArray([Uint32Array.of(0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff)], new A.Decimal(3, 30, 128)), '"-0.001"'],
  [vectorFromArray([[7, 8]], new A.FixedSizeList(2, new Field('item', new Int32(), true))), '[7,8]'],
  [vectorFromArray([null], new A.Null()), 'null'],
];
const arrowName = (i) => `c${String(i).padStart(2, '0')}`;
fs.writeFileSync(path.join(out, 'arrow-types.jsonl'), `{${arrowKinds.map(([, v], i) => `"${arrowName(i)}":${v}`)}}\n`);
put('js-types.arrow', write(new arrow.Table(Object.fromEntries(arrowKinds.map(([v], i) => [arrowName(i), v]))), 'stream'), 'arrow-types.jsonl');
const duration = new arrow.Table({ id: vectorFromArray([1], new Int32()), d: vectorFromArray([1n], new A.DurationSecond()) });
put('js-duration.arrow', write(duration, 'stream'), "!column 'd': the type Duration");
const map = new A.Map_(new Field('entries', new Struct([new Field('key', new Utf8(), false), new Field('value', new Int32(), true)]), false));
put('js-map.arrow', write(new arrow.Table({ m: vectorFromArray([{ a: 1 }], map), id: vectorFromArray([1], new Int32()) }), 'stream'), 'map.jsonl');

// What save_to_disk() leaves: two shards.
const saved = path.join(out, 'saved');
fs.mkdirSync(path.join(saved, 'train'), { recursive: true });
const shards = [coded.slice(0, 10), coded.slice(10)];
shards.forEach((t, i) => fs.writeFileSync(path.join(saved, `train/data-0000${i}-of-00002.arrow`), write(t, 'stream')));
fs.writeFileSync(path.join(saved, 'dataset_dict.json'), '{"splits": ["train"]}');
fs.writeFileSync(path.join(saved, 'train/dataset_info.json'), JSON.stringify({ citation: '', description: '', features: {}, homepage: '', license: '' }, null, 2));
fs.writeFileSync(path.join(saved, 'train/state.json'), JSON.stringify({ _data_files: shards.map((_, i) => ({ filename: `data-0000${i}-of-00002.arrow` })),
  _fingerprint: '0123456789abcdef', _format_columns: null, _format_kwargs: {}, _format_type: null, _output_all_columns: false, _split: 'train' }, null, 2));
put('saved/train', null, 'flat.jsonl');

fs.writeFileSync(path.join(out, 'cases.tsv'), cases.join('\n') + '\n');
