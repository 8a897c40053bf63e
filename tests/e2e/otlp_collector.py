"""A collector for tests: otlp_collector.py KIND FOLDER.  Writes its port to FOLDER/port and keeps requests there.

KIND: keep (a file for each signal; the first request gets 503, at once again), refuse (400), move (307 to the address
in FOLDER/moved), hang (never answers).  FOLDER/headers has a line for each request: its path, x-key and user agent."""
import http.server
import json
import sys
import threading

kind, folder = sys.argv[1:]
lock, count = threading.Lock(), [0]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            count[0] += 1
            with open(folder + "/headers", "a") as f:
                print(self.path, self.headers.get("x-key"), self.headers.get("User-Agent"), file=f)
            if kind == "hang":
                threading.Event().wait(300)
            status = {"refuse": 400, "move": 307}.get(kind, 503 if count[0] == 1 else 200)
            if status == 200:
                json.loads(body)
                with open(folder + "/" + self.path.split("/")[-1], "ab") as f:
                    f.write(body + b"\n")
            self.send_response(status)
            if status == 307:
                self.send_header("Location", open(folder + "/moved").read().strip())
            if status == 503:
                self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(folder + "/port", "w") as f:
    print(server.server_address[1], file=f)
server.serve_forever()
