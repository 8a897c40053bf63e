"""Search engines in their documented shapes, for test_web_search.sh; the first line on stdout is the port.
A query picks a fault: "busy" (429 once), "denied", "junk", "odd", "none"."""
import http.server
import json
import sys
import urllib.parse

log = open(sys.argv[1], "a", buffering=1)
busy = set()
HITS = [("One <strong>title</strong>", "https://example.org/1?a=b&c", "First   text &amp; more"), ("Two", "https://example.org/2", "x" * 900)]


def answer(engine, query):
    hits = [] if query == "none" else HITS
    if engine == "searxng":
        return {"query": query, "results": [{"title": t, "url": u, "content": c, "engine": "fake", "score": 1} for t, u, c in hits]}
    if engine == "brave":
        return {"type": "search", "web": {"results": [{"title": t, "url": u, "description": c} for t, u, c in hits]}}
    if engine == "tavily":
        return {"query": query, "results": [{"title": t, "url": u, "content": c, "score": 0.9} for t, u, c in hits]}
    return {"organic": [{"title": t, "link": u, "snippet": c, "position": i} for i, (t, u, c) in enumerate(hits)]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urllib.parse.urlparse(self.path)
        engine = url.path.strip("/").split("/")[0]
        fields = json.loads(body) if body else dict(urllib.parse.parse_qsl(url.query))
        query = fields.get("q") or fields.get("query")
        key = self.headers["X-Subscription-Token"] or self.headers["Authorization"] or self.headers["X-API-KEY"]
        log.write("%s %s key=%s %s\n" % (self.command, url.path, key, json.dumps(fields, sort_keys=True)))
        status, text = 200, json.dumps(answer(engine, query))
        if query == "busy" and engine not in busy:
            busy.add(engine)
            status, text = 429, '{"message": "slow down"}'
        elif query == "denied":
            status, text = 403, '{"detail": "no"}'
        elif query == "junk":
            text = "<html>"
        elif query == "odd":
            text = '{"results": [5, {"url": null}, {"link": 7}], "web": "x", "organic": {"a": 1}}'
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
