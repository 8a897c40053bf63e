"""A small web site for test_http.sh: python3 web.py LOG; the first line on stdout is its port."""
import http.server, sys, time

log = open(sys.argv[1], "a", buffering=1)


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        log.write("%s %s host=%s auth=%s key=%s type=%s body=%s\n" % (
            self.command, self.path, self.headers["Host"].split(":")[0], self.headers["Authorization"],
            self.headers["X-Api-Key"], self.headers["Content-Type"], body.decode(errors="replace")))
        path = self.path.split("?")[0]
        port = self.server.server_address[1]
        if path == "/page":
            self.answer(200, "caf\u00e9".encode(), Content_Type="text/plain; charset=utf-8", X_One="1")
        elif path == "/json":
            self.answer(200, b'{"b":[1,2],"a":null}', Content_Type="application/json")
        elif path == "/echo":
            self.answer(200, body, Content_Type="application/json")
        elif path == "/missing":
            self.answer(404, b"no such page", Content_Type="text/plain")
        elif path == "/big":
            self.answer(200, b"x" * 300000)
        elif path == "/loop":
            self.answer(302, Location="/loop")
        elif path == "/hop":
            self.answer(302, Location="page")
        elif path == "/see-other":
            self.answer(303, Location="/page")
        elif path == "/same-method":
            self.answer(307, Location="/echo")
        elif path == "/away":
            self.answer(302, Location="http://localhost:%d/page" % port)
        elif path == "/inside":
            self.answer(302, Location="http://127.0.0.2:%d/page" % port)
        elif path == "/file":
            self.answer(302, Location="file:///etc/passwd")
        elif path == "/slow":
            time.sleep(1200)
            self.answer(200)
        elif path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"short")
            self.close_connection = True
        else:
            self.answer(200, path.encode())

    do_GET = do_POST = do_HEAD = do_PUT = do


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):  # clients go away, that is what is tested
        pass


server = Server(("127.0.0.1", 0), Site)
print(server.server_address[1], flush=True)
server.serve_forever()
