# A model server that closes its kept-alive connections without a word about it, as llama-server does.
#
#   closing.py each|second  prints "listening PORT"; a connection is closed after each streamed reply,
#                           or after every second one
#
# The close comes up to 2 ms after the reply, so that it crosses the next request again and again.
import json, random, socket, sys, threading, time

each = sys.argv[1] == "each"
models = json.dumps({"object": "list", "data": [{"id": "closing", "object": "model"}]}).encode()


def event(data):
    text = b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(text), text)


def choice(delta, finish=None):
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


reply = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    + choice({"role": "assistant", "content": ""})
    + choice({"content": "FINAL ANSWER: 42"})
    + choice({}, "stop")
    + event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
    + event(b"[DONE]")
    + b"0\r\n\r\n"
)


def requests(connection):
    """The method of each request on the connection."""
    got = b""
    while True:
        while b"\r\n\r\n" not in got:
            more = connection.recv(65536)
            if not more:
                return
            got += more
        head, got = got.split(b"\r\n\r\n", 1)
        fields = [line.split(b":", 1) for line in head.split(b"\r\n")[1:]]
        length = sum(int(value) for name, value in fields if name.lower() == b"content-length")
        while len(got) < length:
            more = connection.recv(65536)
            if not more:
                return
            got += more
        got = got[length:]
        yield head.split(b" ", 1)[0]


def serve(connection):
    n = 0
    try:
        for method in requests(connection):
            if method == b"GET":
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                connection.sendall(head % len(models) + models)
                continue
            connection.sendall(reply)
            n += 1
            if each or n == 2:
                until = time.perf_counter() + random.random() * 0.002
                while time.perf_counter() < until:
                    pass
                return
    except OSError:
        pass
    finally:
        connection.close()


listener = socket.create_server(("127.0.0.1", 0), backlog=512)
print("listening", listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
