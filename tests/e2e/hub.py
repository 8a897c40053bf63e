"""A hub for test_fetch.sh: python3 hub.py LOG; the first line on stdout is its port.

The repository's name says what goes wrong: acme/NAME.  Files lie behind a redirect to another host name (a
CDN), as the hub's large files do.  LOG has a line for each request: host, path, whether a token came, range."""
import hashlib, http.server, json, socketserver, sys

log = open(sys.argv[1], "a", buffering=1)
ROWS = b"".join(b'{"question":"What is %d + 1?","answer":"%d","pad":"%s"}\n' % (i, i + 1, b"x" * 900) for i in range(300))
FILES = {"README.md": b"# sums\n", "data/test.jsonl": ROWS, "data/train.jsonl": b'{"question":"t","answer":"1"}\n'}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
counts = {}


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def tree(self, repo):
        entries = [{"type": "directory", "path": "data", "oid": "0" * 40, "size": 0}]
        for path, data in FILES.items():
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_hash(data)}
            if path == "data/test.jsonl":
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
                if repo == "badsum":
                    entry["lfs"]["oid"] = "ab" * 32
                if repo == "shorter":
                    entry["size"] += 5
                if repo == "longer":
                    entry["size"] -= 5
            if repo == "escape" and path == "README.md":
                entry["path"] = "../../README.md"
            entries.append(entry)
        return entries

    def times(self, key):
        counts[key] = counts.get(key, 0) + 1
        return counts[key]

    def do_GET(self):
        path, host = self.path.split("?")[0], self.headers["Host"].split(":")[0]
        log.write("%s %s token=%s range=%s\n" % (host, self.path, self.headers["Authorization"], self.headers["Range"]))
        port, parts = self.server.server_address[1], path.strip("/").split("/")
        if parts[0] == "api":
            repo = parts[3]
            if repo == "gated" and self.headers["Authorization"] != "Bearer hf_accepted_token":
                return self.answer(403 if self.headers["Authorization"] else 401, b"{}", X_Error_Code="GatedRepo",
                                   X_Error_Message="Access to dataset acme/gated is restricted")
            if repo == "private":
                return self.answer(401, b"{}", X_Error_Code="RepoNotFound")
            if repo == "missing":
                return self.answer(404, b"{}", X_Error_Code="RepoNotFound")
            if repo == "busy" and self.times("busy") == 1:
                return self.answer(429, b"slow down", Retry_After="2")
            if repo == "down":
                return self.answer(503, b"down")
            if repo == "nonsense":
                return self.answer(200, b"<html>")
            if parts[4] == "revision":
                if parts[5] == "nowhere":
                    return self.answer(404, b"{}", X_Error_Code="RevisionNotFound")
                return self.answer(200, json.dumps({"sha": COMMIT}).encode())
            entries = self.tree(repo)
            if repo == "endless":
                link = '<http://127.0.0.1:%d%s?cursor=%d>; rel="next"' % (port, path, self.times("endless"))
                return self.answer(200, json.dumps(entries[:1]).encode(), Link=link)
            if repo == "many":
                files = [{"type": "file", "path": "f%d" % i, "size": 1, "oid": "0" * 40} for i in range(100001)]
                return self.answer(200, json.dumps(files).encode())
            if "cursor" not in self.path:  # two pages
                link = '<http://127.0.0.1:%d%s?recursive=true&cursor=2>; rel="next"' % (port, path)
                return self.answer(200, json.dumps(entries[:2]).encode(), Link=link)
            return self.answer(200, json.dumps(entries[2:]).encode())
        if parts[0] == "datasets":
            repo, name = parts[2], "/".join(parts[5:])
            if name == "README.md":
                return self.answer(200, FILES[name])
            if repo == "loop":
                return self.answer(302, Location=self.path)
            return self.answer(302, Location="http://localhost:%d/cdn/%s/%s" % (port, repo, name))
        if parts[0] == "cdn":
            return self.serve(parts[1], FILES["/".join(parts[2:])])
        self.answer(404, b"no such path")

    def serve(self, repo, data):
        start = int(self.headers["Range"][6:-1]) if self.headers["Range"] else 0
        if repo == "cut" and len(data) > 10000 and (self.times("cut") < 3 or counts["cut"] > 100):
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", "bytes %d-%d/%d" % (start, len(data) - 1, len(data)))
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            self.wfile.write(data[start:start + 100000])
            self.close_connection = True
            return None
        if repo == "norange" and len(data) > 10000:
            if self.times("norange") == 1:
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[:50000])
                self.close_connection = True
                return None
            return self.answer(200, data)
        if repo == "wrongrange" and start:
            return self.answer(206, data[5:], Content_Range="bytes 5-%d/%d" % (len(data) - 1, len(data)))
        if start:
            return self.answer(206, data[start:], Content_Range="bytes %d-%d/%d" % (start, len(data) - 1, len(data)))
        return self.answer(200, data)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Hub)
print(server.server_address[1], flush=True)
server.serve_forever()
