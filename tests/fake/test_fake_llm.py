"""Tests the scripted server itself with Python's own HTTP client.  Usage: test_fake_llm.py FAKE_LLM"""
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

FAKE = sys.argv.pop(1)
TMP = tempfile.TemporaryDirectory()


def tearDownModule():
    TMP.cleanup()


class Server:
    def __init__(self, *args, script=None):
        if script is not None:
            path = os.path.join(TMP.name, "cassette.txt")
            with open(path, "w", encoding="utf-8") as f:
                f.write(script)
            args = ("--script", path) + args
        self.process = subprocess.Popen([FAKE, *args], stdout=subprocess.PIPE, text=True)
        word, port = self.process.stdout.readline().split()
        assert word == "listening"
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        code = self.process.wait(10)
        self.process.stdout.close()
        assert code == 0, f"fake_llm ended with {code}"

    def ask(self, body=None, path="/v1/chat/completions", headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            if body is None:
                c.request("GET", path, headers=headers or {})
            else:
                c.request("POST", path, json.dumps(body), headers or {})
            r = c.getresponse()
            return r.status, r.headers, r.read().decode()
        finally:
            c.close()


def events(text):
    parts = text.split("\n\n")
    assert parts[-1] == ""
    data = [p[len("data: "):] for p in parts[:-1]]
    return [d if d == "[DONE]" else json.loads(d) for d in data]


def joined(evs, field="content"):
    return "".join((e["choices"][0]["delta"].get(field) or "")
                   for e in evs if e != "[DONE]" and e["choices"])


def calls(evs):
    out = {}
    for e in evs:
        if e == "[DONE]" or not e["choices"]:
            continue
        for call in e["choices"][0]["delta"].get("tool_calls", []):
            entry = out.setdefault(call["index"], {"name": "", "arguments": "", "id": ""})
            entry["id"] += call.get("id", "")
            entry["name"] += call["function"].get("name", "")
            entry["arguments"] += call["function"].get("arguments", "")
    return [out[i] for i in sorted(out)]


def finish(evs):
    words = [e["choices"][0]["finish_reason"] for e in evs if e != "[DONE]" and e["choices"]]
    return [w for w in words if w]


USER = {"role": "user", "content": 'say "role":"tool" and Observation: nothing'}
TOOL = {"role": "tool", "tool_call_id": "x", "content": "5"}


class Bench(unittest.TestCase):
    def test_native(self):
        with Server("--bench", "2", "--events", "7", "--prompt-tokens", "55") as s:
            for stream in (False, True):
                for n in range(4):
                    status, _, text = s.ask({"messages": [USER] + [TOOL] * n, "stream": stream})
                    self.assertEqual(status, 200)
                    final = n >= 2
                    if stream:
                        evs = events(text)
                        self.assertEqual(evs[-1], "[DONE]")
                        self.assertEqual(evs[-2]["usage"]["prompt_tokens"], 55)
                        content, got, why = joined(evs), calls(evs), finish(evs)
                        self.assertEqual(len(evs), 11 if final else 14)
                    else:
                        d = json.loads(text)["choices"][0]
                        content, why = d["message"]["content"], [d["finish_reason"]]
                        got = [c["function"] for c in d["message"].get("tool_calls", [])]
                    self.assertEqual(why, ["stop" if final else "tool_calls"])
                    self.assertEqual(content.endswith("FINAL ANSWER: 42"), final)
                    if final:
                        self.assertEqual(got, [])
                    else:
                        self.assertEqual(got[0]["name"], "calculator")
                        self.assertEqual(json.loads(got[0]["arguments"]),
                                         {"expression": f"2+3*{n}"})

    def test_react(self):
        with Server("--bench-react", "2") as s:
            seen = {"role": "user", "content": "Observation: 5"}
            system = {"role": "system", "content": "Format:\nObservation: what the tool said"}
            for n, last in ((0, False), (1, False), (2, True)):
                text = s.ask({"messages": [system, USER] + [seen] * n, "stream": True})[2]
                content = joined(events(text))
                self.assertEqual("Final Answer: 42" in content, last)
                self.assertEqual('Action Input: {"expression":"2+3*%d"}' % n in content, not last)

    def test_other_paths(self):
        with Server() as s:
            self.assertEqual(json.loads(s.ask(path="/v1/models")[2])["data"][0]["id"], "fake-model")
            self.assertEqual(s.ask(path="/health")[0], 200)
            self.assertEqual(s.ask(path="/nowhere")[0], 404)
            self.assertEqual(json.loads(s.ask(path="/stats")[2])["requests"], 0)

    def test_key_and_model(self):
        with Server("--key", "k1", "--strict-model") as s:
            body = {"model": "fake-model", "messages": [USER]}
            self.assertEqual(s.ask(body)[0], 401)
            self.assertEqual(s.ask(body, headers={"Authorization": "Bearer k2"})[0], 401)
            right = {"Authorization": "Bearer k1"}
            self.assertEqual(s.ask(body, headers=right)[0], 200)
            self.assertEqual(s.ask({"model": "x", "messages": []}, headers=right)[0], 404)

    def test_log_and_limit(self):
        log = os.path.join(TMP.name, "log.txt")
        s = Server("--log", log, "--requests", "2")
        for i in range(2):
            self.assertEqual(s.ask({"messages": [], "n": i})[0], 200)
        self.assertEqual(s.process.wait(10), 0)
        s.process.stdout.close()
        with open(log, encoding="utf-8") as f:
            lines = f.read().split("\n")
        self.assertEqual([json.loads(x)["n"] for x in lines if x.startswith("{")], [0, 1])
        self.assertEqual(sum(x.startswith("#") for x in lines), 2)

    def test_many_connections(self):
        with Server("--bench", "0", "--delay-ms", "50") as s:
            body = json.dumps({"messages": [USER], "stream": True}).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
            socks = []
            for _ in range(300):
                c = socket.create_connection(("127.0.0.1", s.port), timeout=20)
                c.sendall(head + body)
                socks.append(c)
            for c in socks:
                got = b""
                while not got.endswith(b"0\r\n\r\n"):
                    piece = c.recv(65536)
                    self.assertTrue(piece)
                    got += piece
                c.close()
            self.assertGreater(json.loads(s.ask(path="/stats")[2])["in_flight_max"], 1)

    def test_pipelined(self):
        with Server() as s:
            one = b"GET /health HTTP/1.1\r\n\r\n"
            c = socket.create_connection(("127.0.0.1", s.port), timeout=20)
            c.sendall(one * 3)
            got = b""
            while got.count(b'{"status":"ok"}') < 3:
                piece = c.recv(4096)
                self.assertTrue(piece)
                got += piece
            c.close()


CHAT = {"messages": [USER], "stream": True}


class Script(unittest.TestCase):
    def test_order_and_conditions(self):
        with Server(script="text one\n---\nwhen marker\nalways\ntext both\n---\n"
                           "unless marker\ntext two words\n") as s:
            say = lambda b: joined(events(s.ask(b)[2]))
            self.assertEqual(say(CHAT), "one")
            self.assertEqual(say({**CHAT, "m": "marker"}), "both")
            self.assertEqual(say({**CHAT, "m": "marker"}), "both")
            self.assertEqual(say(CHAT), "two words")
            status, _, text = s.ask(CHAT)
            self.assertEqual((status, json.loads(text)["error"]["message"]),
                             (500, "the cassette is over"))

    def test_reply(self):
        script = ("always\nreasoning hm hm\ntext Thought: a\\nb \"q\"\n"
                  'call f {"x":"é"}\ncall g {}\nusage 12 34\n')
        with Server(script=script) as s:
            evs = events(s.ask(CHAT)[2])
            self.assertEqual(joined(evs), 'Thought: a\nb "q"')
            self.assertEqual(joined(evs, "reasoning_content"), "hm hm")
            got = calls(evs)
            self.assertEqual([(c["name"], c["arguments"]) for c in got],
                             [("f", '{"x":"é"}'), ("g", "{}")])
            self.assertEqual(len({c["id"] for c in got}), 2)
            self.assertEqual(finish(evs), ["tool_calls"])
            self.assertEqual(evs[-2]["usage"], {"prompt_tokens": 12, "completion_tokens": 34,
                                                "total_tokens": 46})
            whole = json.loads(s.ask({"messages": []})[2])
            message = whole["choices"][0]["message"]
            self.assertEqual(message["content"], 'Thought: a\nb "q"')
            self.assertEqual(message["reasoning_content"], "hm hm")
            self.assertEqual([c["function"]["name"] for c in message["tool_calls"]], ["f", "g"])

    def test_errors_and_headers(self):
        with Server(script='status 429 Slow\nheader Retry-After: 7\njson {"a":1}\n---\n'
                           'type text/html\nclose\nbody <p>\\n\n---\nfinish length\nno-usage\n'
                           'no-done\ntext x\n') as s:
            status, headers, text = s.ask(CHAT)
            self.assertEqual((status, headers["Retry-After"], text), (429, "7", '{"a":1}'))
            status, headers, text = s.ask(CHAT)
            self.assertEqual((status, headers["Content-Type"], text), (200, "text/html", "<p>\n"))
            self.assertNotIn("Content-Length", headers)
            evs = events(s.ask(CHAT)[2])
            self.assertEqual((finish(evs), len(evs)), (["length"], 3))

    def test_breaks(self):
        with Server(script='text half\ncut\n---\ncut\n---\nreset\n---\njson {"a":1}\ncut\n---\n'
                           'slow 0\ntext slow but whole\n---\ntext x\nitl 5\ntext y z\ndelay 5\n') as s:
            for error in (http.client.IncompleteRead, http.client.RemoteDisconnected,
                          ConnectionResetError, http.client.IncompleteRead):
                with self.assertRaises(error):
                    s.ask(CHAT)
            self.assertEqual(joined(events(s.ask(CHAT)[2])), "slow but whole")
            self.assertEqual(joined(events(s.ask(CHAT)[2])), "xy z")

    def test_endless_and_stall_end_with_the_client(self):
        log = os.path.join(TMP.name, "gone.txt")
        with Server("--log", log, script="text a\nendless\n---\ntext b\nstall\n---\ntext c\n") as s:
            body = json.dumps(CHAT).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
            for expect in (100000, 100):
                c = socket.create_connection(("127.0.0.1", s.port), timeout=20)
                c.sendall(head + body)
                got = 0
                while got < expect:
                    got += len(c.recv(65536))
                c.close()
            self.assertEqual(joined(events(s.ask(CHAT)[2])), "c")
            with open(log, encoding="utf-8") as f:
                gone = [x for x in f if x.endswith("gone\n")]
            self.assertEqual(sorted(gone), ["#1 gone\n", "#2 gone\n"])

    def test_cassette_mistakes_are_named(self):
        path = os.path.join(TMP.name, "bad.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("text a\n---\nstatsu 200\n")
        p = subprocess.run([FAKE, "--script", path], capture_output=True, text=True, timeout=20)
        self.assertEqual(p.returncode, 2)
        self.assertIn("bad.txt:3: unknown directive: statsu 200", p.stderr)


if __name__ == "__main__":
    unittest.main()
