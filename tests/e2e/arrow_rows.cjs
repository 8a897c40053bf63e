// Prints the rows of an Arrow IPC stream as JSON lines, as npm's apache-arrow reads them.
const { tableFromIPC } = require("apache-arrow");
const fs = require("fs");

function plain(value) {
    if (value === null || value === undefined) return null;
    if (typeof value === "bigint") return Number(value);
    if (typeof value === "object") return Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]));
    return value;
}

for (const row of tableFromIPC(fs.readFileSync(process.argv[2]))) console.log(JSON.stringify(plain(row)));
