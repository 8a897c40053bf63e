# N-9: a certificate that is expired, for another host, or signed by nobody known is refused, and the
# request with its key is not sent; --cacert trusts one.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "openssl is not installed"

echo '{"question":"What is 40 + 2?","answer":"42"}' >one.jsonl
export OPENAI_API_KEY=sk-canary-4711-tls

# certificate NAME SUBJECT_ALT_NAME DAYS
certificate() {
    openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" &&
        echo "subjectAltName=$2" >"$1.ext" &&
        openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -extfile "$1.ext" \
            -days "$3" -out "$1.pem"
}
{
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj "/CN=test ca" -days 30 &&
        certificate good IP:127.0.0.1 30 && certificate expired IP:127.0.0.1 -1 &&
        certificate other DNS:other.example 30
} >openssl.log 2>&1 || fail "openssl: $(tail -3 openssl.log)"

cat >server.py <<'PY'
import http.server, json, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, kind, body):
        with open(sys.argv[2], "a") as f:
            f.write(self.command + " " + self.path + "\n")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer("application/json", b'{"data":[{"id":"m"}]}')
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer("text/event-stream", b'data: {"choices":[{"index":0,"delta":{"content":'
            b'"FINAL ANSWER: 42"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + ".pem", sys.argv[1] + ".key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
PY

# serve NAME: sets URL, LOG.
serve() {
    LOG=$WORK/$1.log
    : >"$LOG"
    mkfifo "$1.port"
    python3 server.py "$1" "$LOG" >"$1.port" 2>"$1.err" &
    FAKES="$FAKES $!"
    read -r port <"$1.port"
    URL=https://127.0.0.1:$port/v1
}

run_it() {
    code=$1
    shift
    rm -rf run
    expect_exit "$code" agent run single --dataset one.jsonl --base-url "$URL" --model m --output run "$@"
}

step "N-9 signed by nobody known"
serve good
run_it 1
match_err "no secure connection.*certificate"
assert_file_lines "$LOG" 0
step "N-9 the same with --cacert"
run_it 0 --cacert ca.pem
assert_json run/traces.jsonl 'd[0]["completed"] and d[0]["answer"] == "42"'
expect_exit 0 agent list models --base-url "$URL" --cacert ca.pem
expect_exit 1 agent list models --base-url "$URL"
step "N-9 expired"
serve expired
run_it 1 --cacert ca.pem
match_err "no secure connection.*expired"
assert_file_lines "$LOG" 0
step "N-9 for another host"
serve other
run_it 1 --cacert ca.pem
match_err "no secure connection.*(match|alternative)"
assert_file_lines "$LOG" 0
step "N-9 a file of certificates that is not there, or not one"
run_it 2 --cacert nothing.pem
match_err "nothing.pem: No such file"
echo nonsense >nonsense.pem
run_it 1 --cacert nonsense.pem
match_err "no secure connection"
assert_file_lines "$LOG" 0

end_test
