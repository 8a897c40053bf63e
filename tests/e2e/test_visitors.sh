# Who may ask: serve, serve --replay and telemetry --listen answer names of loopback only, unless told;
# beyond loopback --listen wants --expose; idle connections keep no scraper out.
. "$(dirname "$0")/lib.sh"

command -v curl >/dev/null || skip "curl is not installed"

# status_of URL CURL-ARGS...: the HTTP status; the answer is in `answer`.
status_of() {
    url=$1
    shift
    curl -s --max-time 60 -o answer -w '%{http_code}' "$@" "$url"
}
# A request of each kind to a server at $1, whose page is $2.
names() {
    port=${1##*:}
    for host in localhost LOCALHOST:$port 127.0.0.1 127.0.0.1:$port 127.8.9.1 '[::1]' "[::1]:$port" added.example; do
        assert_eq "$(status_of "$1$2" -H "Host: $host")" 200 "(Host: $host)"
    done
    for host in evil.example evil.example:$port localhost.evil.example 127.0.0.1.evil.example 192.0.2.7 'a b'; do
        assert_eq "$(status_of "$1$2" -H "Host: $host")" 403 "(Host: $host)"
        assert_contains answer "allow-host"
    done
}

step "serve: names of loopback, and what was added"
start_serve --allow-host added.example
names "${BASE_URL%/v1}" /v1/models

step "serve: a page of another origin cannot post a form's content"
printf '{"model":"demo","messages":[{"role":"user","content":"hi"}]}' >body.json
post() { status_of "$BASE_URL/chat/completions" --data-binary @body.json "$@"; }
json='Content-Type: application/json'
assert_eq "$(post -H 'Origin: https://evil.example' -H 'Content-Type: text/plain')" 403
assert_contains answer "application/json"
assert_eq "$(post -H 'Origin: null')" 403 # curl's own: application/x-www-form-urlencoded
assert_eq "$(post -H 'Origin: http://localhost:3000' -H 'Content-Type: text/plain')" 200
assert_eq "$(post -H 'Content-Type: text/plain')" 200
assert_eq "$(post -H "$json")" 200
# A browser asks before it sends JSON, and is given no leave.
status_of "$BASE_URL/chat/completions" -X OPTIONS -D head -H 'Origin: https://evil.example' -H 'Access-Control-Request-Method: POST' >status
assert_eq "$(cat status)" 405
! grep -qi '^access-control' head || fail "it gives leave to a foreign page"

step "serve: a page of this machine is given leave, and may read the answer"
page='Origin: http://localhost:3000'
status_of "$BASE_URL/chat/completions" -X OPTIONS -D head -H "$page" -H 'Access-Control-Request-Method: POST' \
    -H 'Access-Control-Request-Headers: authorization,content-type' >status
assert_eq "$(cat status)" 204
tr -d '\r' <head >lines
assert_contains lines "Access-Control-Allow-Origin: http://localhost:3000"
assert_contains lines "Access-Control-Allow-Methods: GET, POST"
assert_contains lines "Access-Control-Allow-Headers: authorization,content-type"
assert_eq "$(post -H "$json" -H "$page" -D head)" 200
tr -d '\r' <head >lines
assert_contains lines "Access-Control-Allow-Origin: http://localhost:3000"
printf '{"model":"demo","messages":[{"role":"user","content":"hi"}],"logprobs":true}' >body.json
assert_eq "$(post -H "$json")" 400
assert_contains answer "logprobs: this server has none"

step "serve: response_format, and a request too large for the model's script"
printf '{"model":"demo","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{}}}' >body.json
assert_eq "$(post -H "$json")" 400
assert_contains answer "does not honour 'json_schema'"
python3 -c 'import json; json.dump({"model": "demo", "messages": [{"role": "user", "content": "x" * 20000000}]}, open("body.json", "w"))'
assert_eq "$(post -H "$json")" 413
assert_contains answer "too large for the 64 MiB"
stop_serve

step "serve --replay: the same"
printf '{"id":"q%s","prompt":"What is 6 times 7?","answer":"42"}\n' 1 2 >rows.jsonl
expect_exit 0 agent run single --dataset rows.jsonl --model demo --telemetry none --output record -q
start_serve --replay record --allow-host added.example
names "${BASE_URL%/v1}" /v1/models
stop_serve

step "serve listens on loopback only"
expect_exit 2 agent serve --host 0.0.0.0
check_err "only loopback addresses"

# listen ARGS: the page in the background; URL, remarks in listen.err.
listen() {
    rm -f listen.out
    mkfifo listen.out || fail "mkfifo"
    "$IPW_AGENT" telemetry --telemetry none "$@" --duration 300s >listen.out 2>listen.err &
    LISTENER=$!
    FAKES="$FAKES $LISTENER"
    word=
    read -r word URL <listen.out
    [ "$word" = listening ] || fail "telemetry --listen did not start: $(cat listen.err)"
}
stop_listening() {
    kill "$LISTENER" && wait "$LISTENER" 2>/dev/null
    FAKES=$(echo "$FAKES" | sed "s/ $LISTENER\$//")
}

step "telemetry --listen: beyond loopback only with --expose, and it is said"
for address in 0.0.0.0:0 192.0.2.1:9440; do
    expect_exit 2 agent telemetry --telemetry none --listen $address
    check_err "--expose"
    one_message
done
expect_exit 2 agent telemetry --expose
check_err "--listen"

step "telemetry --listen on loopback"
listen --listen 127.0.0.1:0 --allow-host added.example
names "${URL%/metrics}" /metrics
assert_eq "$(cat listen.err)" ""
stop_listening

step "exposed: addresses in numbers and the machine's own name as well, other names not"
listen --listen 0.0.0.0:0 --expose
assert_file_lines listen.err 1
assert_contains listen.err "without a password"
URL=http://127.0.0.1:${URL##*:}
for host in localhost 192.0.2.7 '[2001:db8::1]:9440' "$(hostname 2>/dev/null || cat /etc/hostname)"; do
    assert_eq "$(status_of "$URL" -H "Host: $host")" 200 "(Host: $host)"
done
assert_eq "$(status_of "$URL" -H "Host: evil.example")" 403

step "idle connections, and those that say a byte now and then, keep no scraper out"
python3 - "$URL" <<'PY' || fail "shut out"
import socket, sys, threading, time, urllib.request
address = sys.argv[1].split("//")[1].split("/")[0].split(":")
held = []
def hold():
    s = socket.create_connection((address[0], int(address[1])), timeout=60)
    s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
    held.append(s)
for _ in range(200): hold()
def drip():  # no time limit of the server's ever ends these
    while True:
        for s in list(held):
            try: s.sendall(b"x")
            except OSError: held.remove(s)
        time.sleep(0.2)
threading.Thread(target=drip, daemon=True).start()
for _ in range(5):
    page = urllib.request.urlopen(sys.argv[1], timeout=60).read().decode()
    assert "ipw_power_watts" in page, page
# Those that came last are still held: only the oldest were closed.
held[-1].sendall(b"x\r\n\r\n")
assert held[-1].recv(12) == b"HTTP/1.1 200"
PY
stop_listening

end_test
