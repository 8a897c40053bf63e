// Reads OTLP/HTTP JSON requests (a line each) by the protocol's own schema, from npm's @opentelemetry/otlp-transformer:
// what comes back must be the request to the last member. otlp_schema.cjs traces|metrics FILE
const fs = require("fs"), path = require("path");
const home = path.dirname(require.resolve("@opentelemetry/otlp-transformer/package.json"));
const { collector } = require(path.join(home, "build/src/generated/root")).opentelemetry.proto;
const [signal, file] = process.argv.slice(2);
const type = signal === "traces" ? collector.trace.v1.ExportTraceServiceRequest : collector.metrics.v1.ExportMetricsServiceRequest;
const IDS = { traceId: 16, spanId: 8, parentSpanId: 8 };

// OTLP's JSON has ids in hex, where protobuf's has base64.
function walk(value, id) {
    if (Array.isArray(value)) return value.map(v => walk(v, id));
    if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, k in IDS ? id(v, IDS[k]) : walk(v, id)]));
}
function bytes(hex, n) {
    const b = Buffer.from(hex, "hex");
    if (b.length !== n || b.toString("hex") !== hex || b.every(x => x === 0)) throw new Error("id " + hex);
    return b;
}
const sorted = v => Array.isArray(v) ? v.map(sorted) : typeof v === "object" && v !== null
    ? Object.fromEntries(Object.keys(v).sort().map(k => [k, sorted(v[k])])) : v;
let n = 0;
for (const line of fs.readFileSync(file, "utf8").split("\n").slice(0, -1)) {
    const given = JSON.parse(line), message = type.fromObject(walk(given, bytes)), wrong = type.verify(message);
    if (wrong) throw new Error(wrong);
    const wire = type.decode(type.encode(message).finish()); // and over the binary form
    const back = walk(type.toObject(wire, { longs: String, json: true }), b => Buffer.from(b).toString("hex"));
    for (const r of given.resourceSpans || []) for (const s of r.scopeSpans) n += s.spans.length;
    for (const r of given.resourceMetrics || []) for (const s of r.scopeMetrics) for (const m of s.metrics)
        n += (m.sum || m.gauge).dataPoints.length;
    const a = JSON.stringify(sorted(given)), b = JSON.stringify(sorted(back));
    if (a !== b) {
        let i = 0;
        while (a[i] === b[i]) i++;
        throw new Error("given " + a.slice(i - 100, i + 100) + "\nread " + b.slice(i - 100, i + 100));
    }
}
console.log(n);
