"""A web site of awkward pages for test_visit_page.sh; the first line on stdout is its port."""
import gzip
import http.server

HTML = "text/html; charset=utf-8"
seen = {}


def pages():
    yield "/plain-html", 200, HTML, "<title>T &amp; U</title><h1>Head</h1><p>caf\u00e9 <a href='/x'>link</a>".encode()
    yield "/latin", 200, "text/html; charset=iso-8859-1", "<p>caf\u00e9 \u2013 \u20ac5".encode("cp1252")
    yield "/meta", 200, "text/html", b'<meta charset="windows-1252"><p>na\xefve \x93quoted\x94'
    yield "/bom", 200, HTML, b"\xef\xbb\xbf<p>marked"
    yield "/no-type", 200, None, b"<p>untyped"
    yield "/empty", 200, HTML, b""
    yield "/script-only", 200, HTML, b"<script>document.write('no')</script><style>p{}</style>"
    yield "/hidden", 200, HTML, b"<p>seen<p hidden>unseen too<!-- unseen -->"
    yield "/unclosed", 200, HTML, b"<ul><li>one<li>two<table><tr><td>a<td>b<tr><td>c"
    yield "/entities", 200, HTML, b"<p>&lt;b&gt; &copy; &#x4e16; &unknown; &amp"
    yield "/deep", 200, HTML, b"<div>" * 5000 + b"deep"
    yield "/long", 200, HTML, b"<p>" + b"".join(b"word%d " % i for i in range(6000))
    yield "/line", 200, "text/plain", b"x" * 25000
    yield "/huge", 200, HTML, b"<p>" + b"y" * 5000000
    yield "/json", 200, "application/json", b'{"a": [1, 2]}'
    yield "/paper", 200, "application/pdf", b"%PDF-1.4 fake"
    yield "/pic.png?x=1", 200, "image/png", b"\x89PNG\r\n\x1a\n1234"
    yield "/nul", 200, HTML, b"<p>a\0b"
    yield "/missing", 404, HTML, b"<p>not here"
    yield "/gzip", 200, HTML, gzip.compress(b"<p>unpacked")
    yield "/loop", 302, "/loop", b""
    yield "/inside", 302, "http://127.0.0.2:1/", b""
    yield "/hop", 302, "/plain-html", b""


SITE = {path.split("?")[0]: (status, kind, body) for path, status, kind, body in pages()}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass

    def do_GET(self):
        path = self.path.split("?")[0]
        seen[path] = seen.get(path, 0) + 1
        status, kind, body = SITE.get(path, (404, HTML, b""))
        if path == "/busy":
            status, kind, body = (503, HTML, b"") if seen[path] == 1 else (200, HTML, b"<p>now")
        if path == "/counts":
            status, kind, body = 200, "text/plain", str(seen.get("/long", 0)).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", kind)
        elif kind:
            self.send_header("Content-Type", kind)
        if path == "/gzip":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # a page over the client's limit


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
