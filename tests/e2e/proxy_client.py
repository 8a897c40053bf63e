"""A client of the recording proxy for tests: requests as bytes, answers as bytes.

  proxy_client.py compare DIRECT PROXIED NAME...   each request once directly and once through the proxy:
                                                   status, headers and body must be the same bytes
  proxy_client.py agent TURNS                      an agent: asks, runs the tools that the model calls,
                                                   until an answer comes (OPENAI_BASE_URL, OPENAI_API_KEY)
  proxy_client.py same-ids                         an agent whose tools say which call they answer
  proxy_client.py done                             a stream whose client closes once it has read [DONE]
  proxy_client.py interrupted                      calls after the first signal
  proxy_client.py hostile ADDRESS WORD             what must be refused
"""
import http.client
import json
import os
import signal
import socket
import sys
import time
from urllib.parse import urlparse

CHAT = {"model": "fake-model", "messages": [{"role": "user", "content": "hello"}]}
REQUESTS = {
    "whole": ("/chat/completions", CHAT),
    "stream": ("/chat/completions", {**CHAT, "stream": True}),
    "usage": ("/chat/completions", {**CHAT, "stream": True, "stream_options": {"include_usage": True}}),
    "prompt": ("/completions", {"model": "fake-model", "prompt": ["hello"], "stream": True,
                                "stream_options": {"include_usage": True}}),
    "models": ("/models", None),
    "responses": ("/responses", {"model": "fake-model", "input": "hello", "stream": True}),
    "messages": ("/messages?beta=true", {**CHAT, "stream": True, "max_tokens": 5}),
    "count": ("/messages/count_tokens", CHAT),
    "not-json": ("/chat/completions", b"not json"),
    "unknown": ("/nothing/here", CHAT),
}
# Of the connection, and of the moment.
LEFT_OUT = {"connection", "keep-alive", "transfer-encoding", "date", "content-length"}


def ask(base, path, body, headers=None):
    at = urlparse(base)
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    c.request("GET" if data is None else "POST", at.path + path, data, {
        "Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none"),
        **({"x-session-id": os.environ["SESSION"]} if "SESSION" in os.environ else {}), **(headers or {})})
    r = c.getresponse()
    try:
        said = r.read()
    except http.client.IncompleteRead as e:
        said = e.partial + b" (cut)"
    kept = sorted((k.lower(), v) for k, v in r.getheaders() if k.lower() not in LEFT_OUT)
    return r.status, r.reason, kept, said


def compare(direct, proxied, names):
    for name in names:
        path, body = REQUESTS[name]
        want, got = ask(direct, path, body), ask(proxied, path, body)
        if want != got:
            sys.exit(f"{name}: through the proxy\n{got}\ndirectly\n{want}")


def agent(turns):
    thread = list(CHAT["messages"])
    for _ in range(turns):
        status, _, _, said = ask(os.environ["OPENAI_BASE_URL"], "/chat/completions",
                                 {"model": "fake-model", "messages": thread, "tools": []})
        if status != 200:
            print("refused:", status, said.decode())
            sys.exit(3)
        message = json.loads(said)["choices"][0]["message"]
        thread.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return
        time.sleep(float(os.environ.get("TOOL_S", "0.02")))
        for call in message["tool_calls"]:
            thread.append({"role": "tool", "tool_call_id": call["id"], "content": "5"})


def chat(thread):
    return ask(os.environ["OPENAI_BASE_URL"], "/chat/completions", {"model": "fake-model", "messages": thread})


def same_ids():
    thread = list(CHAT["messages"])
    for number in range(3):
        message = json.loads(chat(thread)[3])["choices"][0]["message"]
        thread.append(message)
        for call in message.get("tool_calls") or []:
            thread.append({"role": "tool", "tool_call_id": call["id"], "content": f"result {number}"})


def done():
    at = urlparse(os.environ["OPENAI_BASE_URL"])
    body = json.dumps(REQUESTS["usage"][1])
    with socket.create_connection((at.hostname, at.port), timeout=10) as s:
        s.sendall((f"POST {at.path}/chat/completions HTTP/1.1\r\nHost: {at.netloc}\r\n"
                   f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        said = b""
        while b"[DONE]" not in said:
            said += s.recv(65536)


def interrupted():
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append(1))
    print("ready", flush=True)
    until = time.monotonic() + 10
    while not came and time.monotonic() < until:
        time.sleep(0.02)
    print("after the signal:", chat(CHAT["messages"])[0], chat(CHAT["messages"])[0], flush=True)


def raw(at, text):
    with socket.create_connection((at.hostname, at.port), timeout=10) as s:
        s.sendall(text.encode())
        said = b""
        while chunk := s.recv(65536):
            said += chunk
            if b"\r\n\r\n" in said and b"Connection: close" not in text.encode():
                break
    return said.split(b"\r\n")[0].decode() if said else "closed"


def hostile(address, word):
    at = urlparse(address)
    host = f"{at.hostname}:{at.port}"
    close = "Connection: close\r\n"
    key = f"Authorization: Bearer {word}\r\n"
    rows = [
        ("a guessed path", f"GET /q/0123456789abcdef01234567/v1/models HTTP/1.1\r\nHost: {host}\r\n{close}\r\n", "404"),
        ("no word", f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\n{close}\r\n", "404"),
        ("a part of the word", f"GET /q/{word[:-1]}/v1/models HTTP/1.1\r\nHost: {host}\r\n{close}\r\n", "404"),
        ("the word and more", f"GET /q/{word}0/v1/models HTTP/1.1\r\nHost: {host}\r\n{close}\r\n", "404"),
        ("the word as a key", f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\n{key}{close}\r\n", "200"),
        ("somebody else's Host", f"GET /q/{word}/v1/models HTTP/1.1\r\nHost: evil.example\r\n{close}\r\n", "403"),
        ("a path that leaves", f"GET /q/{word}/v1/../../secret HTTP/1.1\r\nHost: {host}\r\n{close}\r\n", "404"),
        ("another server's address",
         f"GET http://evil.example/q/{word}/v1/models HTTP/1.1\r\nHost: {host}\r\n{close}\r\n", "40"),
        ("two lengths", f"POST /q/{word}/v1/models HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n"
                        f"Content-Length: 3\r\n{close}\r\nabc", "400"),
        ("a length and chunks", f"POST /q/{word}/v1/models HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n"
                                f"Transfer-Encoding: chunked\r\n{close}\r\n0\r\n\r\n", "400"),
        ("a WebSocket", f"GET /q/{word}/v1/responses HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
                        f"Connection: Upgrade\r\n\r\n", "426"),
    ]
    for what, text, want in rows:
        got = raw(at, text)
        if f" {want}" not in got and not (got == "closed" and want == "400"):
            sys.exit(f"{what}: {got}, not {want}")


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        compare(sys.argv[2], sys.argv[3], sys.argv[4:])
    elif sys.argv[1] == "agent":
        agent(int(sys.argv[2]))
    elif sys.argv[1] in ("same-ids", "done", "interrupted"):
        {"same-ids": same_ids, "done": done, "interrupted": interrupted}[sys.argv[1]]()
    else:
        hostile(sys.argv[2], sys.argv[3])
