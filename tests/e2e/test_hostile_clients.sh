# Every route of the one server under hostile clients: what must be refused is refused, requests that never end and
# answers that nobody reads block nobody, and a good request is answered as before.
# Sanitizer: bytes of strangers.
. "$(dirname "$0")/lib.sh"

cat >hostile.py <<'PY'
import socket, sys
from urllib.parse import urlsplit
at = urlsplit(sys.argv[1])
ROUTES = [route.split(" ", 2) for route in sys.argv[2:]]  # METHOD PATH STATUS-OF-A-GOOD-REQUEST

def connect():
    return socket.create_connection((at.hostname, at.port), timeout=20)

def ask(text, wait=20):
    """The status of the answer; 0: the connection was closed without one."""
    with connect() as s:
        s.settimeout(wait)
        try:
            s.sendall(text)
            first = s.recv(12)
        except ConnectionError:
            return 0
        while len(first) < 12 and (more := s.recv(12 - len(first))):
            first += more
    return int(first[9:12] or 0)

def request(method, path, *headers, body=b"", host=at.netloc):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    if method == "POST" and not any(h.startswith(("Content-L", "Transfer")) for h in headers):
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

def good(method, path):
    return request(method, path, "Content-Type: application/json", body=b"{}" if method == "POST" else b"")

def wants(what, status, *expected):
    assert status in expected, f"{what}: {status}, not {expected}"

for method, path, status in ROUTES:
    status = int(status)
    wants(f"{method} {path}", ask(good(method, path)), status)
    wants(f"{path}: another's Host", ask(request(method, path, host="evil.example")), 403)
    wants(f"{path}: two lengths", ask(request(method, path, "Content-Length: 2", "Content-Length: 3", body=b"{}")), 400)
    wants(f"{path}: a length and chunks", ask(request(method, path, "Content-Length: 3", "Transfer-Encoding: chunked",
        body=b"0\r\n\r\n")), 400)
    wants(f"{path}: a blank before the colon", ask(request(method, path, "Content-Length : 3", body=b"{}")), 400)
    wants(f"{path}: two codings", ask(request(method, path, "Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n")), 400)
    wants(f"{path}: two hosts", ask(request(method, path, "Host: evil.example", body=b"{}")), 400)
    wants(f"{path}: another page's form", ask(request("POST", path, "Origin: https://evil.example",
        "Content-Type: text/plain", body=b"{}")), 403)
    passes = [status] if path.startswith("/q/") else []  # through the proxy; its server judges
    wants(f"{path}: a word for a method", ask(request("BREW", path)), 403, 404, 405, 501, *passes)
    wants(f"{path}: a length that is none", ask(request("POST", path, "Content-Length: 99999999999999999999",
        "Content-Type: application/json")), 0, 400, 405, 413)
    wants(f"{path}: longer than anything", ask(request("POST", path, "Content-Length: 999999999999",
        "Content-Type: application/json")), 404, 405, 413)
    wants(f"{path}: chunks that are none", ask(request("POST", path, "Transfer-Encoding: chunked",
        "Content-Type: application/json", body=b"zz\r\n")), 0, 400, 405)
    wants(f"{path}: a header of 100 kB", ask(request(method, path, "X: " + "x" * 100000)), 0, 400, 413, 431)
for junk in b"\0" * 100000, b"GET " + b"/" * 100000, b"\x16\x03\x01\x02\x00\x01\x00" * 20, b"GET / HTTP/1.1\r\n" + b"a\r\n" * 9999:
    wants(f"junk {junk[:9]}", ask(junk + b"\r\n\r\n", 5), 0, 400, 403, 404, 413, 414, 431, 501)

method, path, status = ROUTES[0]
held = [connect() for _ in range(200)]
for i, s in enumerate(held):  # half a head, half a body, an answer that nobody reads
    s.sendall([f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nX: ".encode(),
               f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode(),
               good(method, path)][i % 3])
wants("behind 200 that wait", ask(good(method, path)), int(status))
for s in held:
    s.close()
for method, path, status in ROUTES:
    wants(f"{method} {path}, in the end", ask(good(method, path)), int(status))
print("refused", len(ROUTES))
PY

# hostile NAME ROUTES...: the server of BASE_URL.
hostile() {
    python3 hostile.py "$@" >out 2>err || fail "$1: $(tail -1 err)"
}

step "serve"
start_serve
hostile "$BASE_URL" "POST /v1/chat/completions 400" "POST /v1/responses 400" "POST /v1/messages 400" "GET /v1/models 200" \
    "GET /v1/models/demo 200" "GET /health 200"
stop_serve

# begin ARGS...: a command whose first line ends with its address.
begin() {
    rm -f said
    "$IPW_AGENT" "$@" >said 2>heard &
    SERVER=$!
    await_lines said
    URL=$(sed -n '1s/.*\(http:[^ ]*\).*/\1/p' said)
}
end() {
    kill -TERM $SERVER
    wait $SERVER || true
}

step "telemetry --listen"
start_tree tree --watts-package 80 --interval-ms 1
IPW_POWERCAP_ROOT="$WORK/tree" begin telemetry --listen 127.0.0.1:0
hostile "$URL" "GET /metrics 200" "GET /stream 200" "GET / 200"
end

step "measure"
start_fake --bench 0
"$IPW_AGENT" measure --upstream "$BASE_URL" --telemetry none -o measured >said 2>heard &
SERVER=$!
await_lines heard
until grep -q ANTHROPIC heard; do sleep 0.02; done
URL=$(sed -n 's/.*OPENAI_BASE_URL=//p' heard)
path=/${URL#http://*/}
hostile "$URL" "GET $path/models 200" "POST $path/chat/completions 200"
cat >many.py <<'PY'
import http.client, resource, socket, sys
from urllib.parse import urlsplit
at, most = urlsplit(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = [socket.create_connection((at.hostname, at.port), timeout=20) for _ in range(min(10000, most // 2))]
for s in held[::2]:
    s.sendall(b"POST /x HTTP/1.1\r\nHost: ")
client = http.client.HTTPConnection(at.hostname, at.port, timeout=20)
client.request("GET", at.path + "/models")
print(client.getresponse().status)
PY
assert_eq "$(python3 many.py "$URL")" 200 "behind 10,000 connections"
end
stop_fake

step "mcp --listen"
begin mcp --listen 127.0.0.1:0
hostile "$URL" "POST $(echo "$URL" | sed 's,http://[^/]*,,') 200"
end

end_test
