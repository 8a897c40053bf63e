# What a program that a model wrote may try to get at the keys of the runner that started it.  It is the
# `code` of a call of the python tool (test_key_hunt.sh); a line before it sets OTHERS: may processes that
# are not the runner's be looked at, too?  It prints "way NAME: nothing" or "way NAME: FOUND", never a key.
import ctypes, glob, os, re, resource, signal, socket, stat, subprocess

MARK = re.compile(b"yranac-9qZ"[::-1] + rb"-([a-z]+)-[0-9a-f]{24}")  # written so that this text is no find
BACK = re.compile(rb"[0-9a-f]{24}-([a-z]+)-" + b"yranac-9qZ")
libc = ctypes.CDLL(None, use_errno=True)
ME, RUNNER = os.getpid(), os.getppid()
PAGE = 4096


def cat(path, most=1 << 22):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, most)
    except OSError:
        return b""
    finally:
        os.close(fd)


def parent_of(pid):
    text = cat("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    return int(text[1]) if len(text) > 1 else 0


def ancestors():
    """The runner, and those above it up to the test: whoever started the test is not looked at, since
    reading another program's pipes takes what it waits for (ctest hung for good)."""
    pid, out = RUNNER, []
    while pid > 1:
        out.append(pid)
        if not OTHERS or b"test_key_hunt" in cat("/proc/%d/cmdline" % pid):
            break
        pid = parent_of(pid)
    return out


def everybody():
    if not OTHERS:
        return [RUNNER]
    family = set(ancestors())
    pids = sorted(int(p) for p in os.listdir("/proc") if p.isdigit())
    for _ in range(8):
        family |= {p for p in pids if parent_of(p) in family}
    return sorted(family - {ME})


def maps(pid):
    for line in cat("/proc/%d/maps" % pid).decode(errors="replace").split("\n"):
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
        if m:
            yield int(m[1], 16), int(m[2], 16)


def likely(pid):
    """Where a stack may be, by what /proc/PID/stat says, and by where ours is."""
    fields = cat("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    for i in (25, 45, 47, 48, 49):  # startstack, start_brk, arg_start, arg_end, env_start
        if i < len(fields) and int(fields[i]) > PAGE:
            yield int(fields[i]) & -PAGE
    for low, _ in maps(ME):
        yield low


def read_mem(pid, path):
    try:
        f = open(path, "rb", 0)
    except OSError:
        return
    with f:
        for low, high in maps(pid) or ((a, a + PAGE) for a in likely(pid)):
            at = low
            while at < min(high, low + (32 << 20)):
                try:
                    f.seek(at)
                    yield f.read(min(1 << 20, high - at))
                except (OSError, OverflowError, ValueError):
                    break
                at += 1 << 20


def vm_readv(pid):
    class IoVec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    buf = ctypes.create_string_buffer(PAGE)
    for at in [a for low, high in maps(pid) for a in range(low, min(high, low + (4 << 20)), PAGE)] or list(likely(pid)):
        n = libc.process_vm_readv(pid, ctypes.byref(IoVec(ctypes.addressof(buf), PAGE)), 1,
                                  ctypes.byref(IoVec(at, PAGE)), 1, 0)
        if n > 0:
            yield buf.raw[:n]


def peek(pid, request):
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    if libc.ptrace(request, pid, 0, 0) < 0:
        return
    if request == 16:
        os.waitpid(pid, 0x40000000)
    yield from read_mem(pid, "/proc/%d/mem" % pid)
    libc.ptrace(17, pid, 0, 0)


def stolen_fds(pid):
    pidfd = libc.syscall(434, pid, 0)
    for fd in range(3, 64) if pidfd >= 0 else ():
        got = libc.syscall(438, pidfd, fd, 0)
        if got >= 0:
            try:
                yield os.pread(got, 1 << 20, 0)
            except OSError:
                pass
            os.close(got)


def open_fds(pid):
    for link in glob.glob("/proc/%d/fd/*" % pid) + glob.glob("/proc/%d/map_files/*" % pid):
        try:
            if stat.S_ISREG(os.stat(link).st_mode):  # a pipe would lose what it holds
                yield cat(link)
        except OSError:
            pass


def core_of_a_crash():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc.syscall(302, RUNNER, 4, ctypes.byref((ctypes.c_ulong * 2)(2**64 - 1, 2**64 - 1)), None)  # prlimit64
    pid = os.fork()
    if pid == 0:
        os.abort()
    os.waitpid(pid, 0)
    for pattern in ("core*", "/tmp/core*", "/var/crash/*", "/var/lib/systemd/coredump/*", "/cores/*"):
        for path in glob.glob(pattern):
            yield cat(path, 1 << 26)


def in_own_namespace():
    pid = os.fork()
    if pid == 0:
        libc.unshare(0x10000000)  # CLONE_NEWUSER: all capabilities, there
        found = any(MARK.search(cat("/proc/%d/environ" % p)) for p in ancestors())
        found = found or any(MARK.search(piece) for piece in read_mem(RUNNER, "/proc/%d/mem" % RUNNER))
        os._exit(42 if found else 0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42:
        yield b"yranac-9qZ"[::-1] + b"-namespace-" + b"0" * 24


def shown_by(*command):
    try:
        got = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
        return [got.stdout, got.stderr]
    except (OSError, subprocess.SubprocessError):
        return []


def debuggers():
    for command in (["gdb", "-p", str(RUNNER), "-batch", "-ex", "info auxv"], ["gcore", str(RUNNER)],
                    ["timeout", "2", "strace", "-s", "4096", "-p", str(RUNNER)]):
        yield from shown_by(*command)
    yield from (cat(path, 1 << 26) for path in glob.glob("core*"))


def become_more():
    for who in (["sudo", "-n"], ["su", "-c"], ["pkexec"]):
        yield from shown_by(*who, "cat /proc/%d/environ" % RUNNER)


def words_of(pid):
    return cat("/proc/%d/cmdline" % pid).split(b"\0")


def record():
    words = [w.decode(errors="replace") for w in words_of(RUNNER)]
    for name, value in zip(words, words[1:]):
        if name in ("--output", "-o", "resume"):
            yield from (cat(path, 1 << 24) for path in glob.glob(value + "/**", recursive=True))


def the_program_itself():
    agent = words_of(RUNNER)[0].decode(errors="replace")
    for command in (["__exec", "--", "env"], ["doctor"], ["list", "sensors"]):
        yield from shown_by(agent, *command)
        yield from shown_by("/proc/%d/exe" % RUNNER, *command)


def wires():
    for family, kind, proto in ((17, socket.SOCK_RAW, socket.htons(3)), (socket.AF_INET, socket.SOCK_RAW, 6)):
        try:
            with socket.socket(family, kind, proto) as s:
                s.settimeout(0.3)
                yield s.recv(65536)
        except OSError:
            pass
    yield from (cat("/proc/net/" + name) for name in ("tcp", "unix", "packet"))


def keyrings():
    buf = ctypes.create_string_buffer(65536)
    for ring in (-1, -2, -3, -4, -5):
        n = libc.syscall(250, 11, ring, buf, 65536, 0)  # KEYCTL_READ
        yield buf.raw[:max(n, 0)]
    yield cat("/proc/keys")


def crash_logs():
    for pattern in ("/var/log/*", "/var/log/*/*", "/var/crash/*", os.environ.get("TMPDIR", "/tmp") + "/*.log*",
                    "/tmp/asan*", "/tmp/ipw-agent*"):
        yield from (cat(path) for path in glob.glob(pattern) if os.path.isfile(path))
    buf = ctypes.create_string_buffer(1 << 20)
    yield buf.raw[:max(libc.klogctl(3, buf, len(buf)), 0)]


def children(pid):
    return [int(c) for path in glob.glob("/proc/%d/task/*/children" % pid) for c in cat(path).split() if int(c) != ME]


def of_all(fn, pids):
    for pid in pids:
        got = fn(pid)
        yield from [got] if isinstance(got, bytes) else got


def files(pattern):
    return (cat(path, 1 << 24) for path in glob.glob(pattern, recursive=True))


environ = lambda pid: cat("/proc/%d/environ" % pid)
memory = lambda pid: read_mem(pid, "/proc/%d/mem" % pid)
WAYS = {
    "own environment": lambda: [repr(os.environb).encode(), environ(ME)],
    "own memory": lambda: (p for p in memory(ME) if b"yranac" not in p),
    "own descriptors": lambda: open_fds(ME),
    "environment of the runner": lambda: [environ(RUNNER)],
    "environment of its threads": lambda: files("/proc/%d/task/*/environ" % RUNNER),
    "environment of its ancestors": lambda: of_all(environ, ancestors()),
    "environment of its children": lambda: of_all(environ, children(RUNNER)),
    "environment of everybody": lambda: of_all(environ, everybody()),
    "command line of the runner": lambda: [b"\0".join(words_of(RUNNER))],
    "command lines of everybody": lambda: (b"\0".join(words_of(p)) for p in everybody()),
    "memory of the runner": lambda: memory(RUNNER),
    "memory of its threads": lambda: of_all(lambda t: read_mem(RUNNER, t), glob.glob("/proc/%d/task/*/mem" % RUNNER)),
    "memory of its ancestors": lambda: of_all(memory, ancestors()),
    "memory of its children": lambda: of_all(memory, children(RUNNER)),
    "process_vm_readv": lambda: vm_readv(RUNNER),
    "ptrace attach": lambda: peek(RUNNER, 16),
    "ptrace seize": lambda: peek(RUNNER, 0x4206),
    "descriptors of the runner": lambda: open_fds(RUNNER),
    "descriptors of everybody": lambda: of_all(open_fds, everybody()),
    "descriptors by pidfd": lambda: stolen_fds(RUNNER),
    "auxv, stack, syscall, wchan": lambda: (cat("/proc/%d/%s" % (RUNNER, n)) for n in ("auxv", "stack", "syscall", "wchan", "status", "io")),
    "folders of the runner": lambda: [c for n in ("cwd", "root") for c in files("/proc/%d/%s/*" % (RUNNER, n))],
    "core files": core_of_a_crash,
    "debuggers": debuggers,
    "a user namespace": in_own_namespace,
    "sudo and su": become_more,
    "the run's own files": record,
    "the program itself": the_program_itself,
    "the machine's memory": lambda: [cat("/dev/mem"), cat("/dev/kmem"), cat("/proc/kcore"), cat("/proc/kmsg")],
    "the wires": wires,
    "kernel keyrings": keyrings,
    "shared memory": lambda: files("/dev/shm/**"),
    "crash logs": crash_logs,
    "workspace and temporary files": lambda: [*files("**"), *files(os.environ.get("TMPDIR", "/tmp") + "/ipw-agent-*/**")],
}
signal.alarm(50)
for name, way in WAYS.items():
    found = set()
    try:
        for piece in way():
            for m in [*MARK.finditer(piece), *BACK.finditer(piece)]:
                found.add(m[1].decode())
    except OSError:
        pass
    print("way %s: %s" % (name, "FOUND " + " ".join(sorted(found)) if found else "nothing"))
print("tried %d ways, OTHERS=%s" % (len(WAYS), OTHERS))
