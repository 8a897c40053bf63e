# The sensors of another machine by `telemetry --listen` and `--telemetry stream=URL`, over a link that takes 200 ms
# and is cut.  (A far clock that drifts: tests/unit/energy/test_stream.c.)
# Sanitizer: sensors over a link.
. "$(dirname "$0")/lib.sh"
[ -z "${IPW_SANITIZE-}" ] || skip "the unit tests of the stream are run with sanitizers; this one would take too long"

# A proxy that delays both directions.  It cuts all connections, and takes none, while the file `cut` is there.
cat >proxy.py <<'PY'
import asyncio, os, sys
far, delay, links = int(sys.argv[1]), float(sys.argv[2]), set()
async def pipe(reader, writer):
    queue = asyncio.Queue()
    async def later():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if not data: return writer.close()
            writer.write(data)
            await writer.drain()
    task = asyncio.create_task(later())
    while True:
        try: data = await reader.read(65536)
        except OSError: data = b""
        queue.put_nowait((asyncio.get_running_loop().time() + delay, data))
        if not data: break
    await task
async def link(reader, writer):
    if os.path.exists("cut"): return writer.close()
    links.add(writer)
    try:
        up = await asyncio.open_connection("127.0.0.1", far)
        await asyncio.gather(pipe(reader, up[1]), pipe(up[0], writer))
    except OSError: pass
    links.discard(writer)
async def main():
    server = await asyncio.start_server(link, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], file=open("proxy.port", "w"))
    while True:
        await asyncio.sleep(0.02)
        if os.path.exists("cut"):
            for writer in list(links): writer.transport.abort()
asyncio.run(main())
PY

step "telemetry --listen streams"
start_tree far --watts-package 80 --watts-dram 5 --interval-ms 1
IPW_POWERCAP_ROOT="$WORK/far" "$IPW_AGENT" telemetry --telemetry rapl --interval 10ms --listen 127.0.0.1:0 >listening 2>listen.err &
FAR=$!
FAKES="$FAKES $FAR"
await_lines listening
FAR_URL=$(sed -n 's,^listening \(http:.*\)/metrics$,\1,p' listening)
python3 - "$FAR_URL" <<'PY' >out 2>err || fail "the stream"
import json, socket, sys, urllib.request
url = sys.argv[1]
def lines(path=""):
    for line in urllib.request.urlopen(url + "/stream" + path, timeout=60):
        if line.strip(): yield json.loads(line)
host, port = url.split("//")[1].split(":")
held = [socket.create_connection((host, int(port)), timeout=60) for _ in range(8)]
for s in held: s.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")  # and do not read
stream = lines()
hello = next(stream)
assert hello["stream"] == 1 and len(hello["boot_id"]) == 36, hello
channels = hello["power"]["sources"][0]["channels"]
assert [(c["name"], c["domain"], c["kind"], c["unit"]) for c in channels] == [
    ("package-0", "cpu", "counter", "uJ"), ("package-0/dram", "dram", "counter", "uJ")], channels
rows = [next(stream) for _ in range(50)]
for a, b in zip(rows, rows[1:]):
    assert b["seq"] == a["seq"] + 1 and b["mono_ns"] > a["mono_ns"] and b["wall_ns"] > 1e18, (a, b)
    assert b["source"] == 0 and all(y >= x for x, y in zip(a["values"], b["values"])), (a, b)
# A reader goes on where it was, if the stream is still the same one.
again = lines("?after=%d&instance=%s" % (rows[10]["seq"], hello["instance"]))
next(again)
assert [next(again) for _ in range(20)] == rows[11:31]
other = lines("?after=%d&instance=another" % rows[10]["seq"])
next(other)
assert next(other)["seq"] > rows[-1]["seq"]
clock = json.load(urllib.request.urlopen(url + "/clock", timeout=60))
assert clock["mono_ns"] > rows[-1]["mono_ns"]
many = [socket.create_connection((host, int(port)), timeout=60) for _ in range(20)]
for s in many: s.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
assert b"HTTP/1.1 503" in [s.recv(12) for s in many]
PY

step "a run over a link of 200 ms that is cut"
python3 proxy.py "${FAR_URL##*:}" 0.2 &
FAKES="$FAKES $!"
await_lines proxy.port
awk 'BEGIN { for (i = 1; i <= 4; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
start_fake --bench 2 --delay-ms 150
(
    while [ ! -s cut-run/power.jsonl ]; do sleep 0.1; done
    sleep 0.5
    : >cut
    sleep 0.6
    rm cut
) &
FAKES="$FAKES $!"
run() { # DIR URL
    expect_exit "${3-0}" agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output "$1" \
        --telemetry "stream=$2"
}
run cut-run "http://127.0.0.1:$(cat proxy.port)"
[ ! -e cut ] || fail "the link was not cut"
expect_exit 0 agent ledger cut-run --check
expect_exit 0 agent validate cut-run
assert_json cut-run/summary.json "all(d['ledger'][k]['balanced'] is True for k in ('cpu', 'dram'))"
# The readings of the cut came later: none is missing, and each has its own time.
assert_lacks cut-run/events.jsonl sensor_lost
python3 - <<'PY' >out 2>err || fail "the readings"
import json, trace_lines
head, *rows = [json.loads(line) for line in open("cut-run/power.jsonl")]
assert [c["name"].split("/", 1)[1] for c in head["sources"][0]["channels"]] == ["package-0", "package-0/dram", "rapl.0/clock"]
wall = json.load(open("cut-run/summary.json"))["own_overhead"]["wall_s"]
assert len(rows) > 20 * wall, (len(rows), wall)
assert all(b[0] > a[0] and b[2] >= a[2] for a, b in zip(rows, rows[1:]))
# One way takes 200 ms, so the times may be off by 200 ms and what the clocks drift, and say so.
assert all(150e6 < r[4] < 400e6 for r in rows), max(r[4] for r in rows)
for line in open("cut-run/traces.jsonl"):
    q = trace_lines.loads(line)
    e, truth = q["energy"]["cpu"], 80 * q["total_wall_clock_s"]
    # The fake sensor is written late on a busy machine; the bounds hold beyond that.
    assert e["joules"] is not None and e["lo"] * 0.8 <= truth <= e["hi"] * 1.25, (e, truth)
    assert e["hi"] - e["lo"] > 0.3 * 80
PY

step "what is no stream is refused, with a reason"
run none "$FAR_URL/other" 2
check_err "/other: expected the address of \`ipw-agent telemetry --listen\`"
mkdir site
printf 'nonsense\n' >site/stream
PYTHONUNBUFFERED=1 python3 -m http.server 0 --bind 127.0.0.1 --directory site >said 2>server.log &
FAKES="$FAKES $!"
await_lines said
run none "http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' said)" 1
one_message
check_err "--telemetry stream=: http://127.0.0.1:"
kill $FAR && wait $FAR 2>/dev/null
run none "$FAR_URL" 1
check_err "Connection refused"

end_test
