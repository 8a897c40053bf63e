"""Attempts to get out of a tool's sandbox.  escapes.py NAME OUTSIDE PID PORT does one and prints "held" or
"ESCAPED: how".  OUTSIDE is a file of the user with the word canary, PID a process outside, PORT a port that
listens on 127.0.0.1 outside.  Attempts that would harm the machine if they came through are small."""
import ctypes, fcntl, glob, os, platform, signal, socket, subprocess, sys, termios, time

name, outside, pid, port = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NAME, PTRACE_ATTACH, CLONE_NEWUSER, CLONE_NEWNS, TIOCSTI = 15, 16, 0x10000000, 0x00020000, 0x5412
KEY_SPEC_SESSION_KEYRING, AF_VSOCK = -3, 40
# Numbers of calls that the C library has no function for.
CALLS = {"io_uring_setup": 425, "clone3": 435, **(
    {"add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220} if platform.machine() == "aarch64" else
    {"add_key": 248, "request_key": 249, "keyctl": 250, "clone": 56})}


def call(name, *args):
    return libc.syscall(CALLS.get(name, name), *args)


def escaped(how):
    print("ESCAPED:", how)
    sys.exit(0)


def reads(path):
    """The canary is there to be found."""
    try:
        with open(path, "rb") as f:
            return b"canary" in f.read(1 << 20)
    except OSError:
        return False


def succeeds(f, *args):
    try:
        f(*args)
        return True
    except OSError:
        return False


def tcp():
    if succeeds(socket.create_connection, ("127.0.0.1", port), 2):
        escaped("a port of this machine")


def tcp_far():
    if succeeds(socket.create_connection, ("192.0.2.1", 80), 2):
        escaped("another machine")


def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if succeeds(s.sendto, b"x", ("192.0.2.1", 53)):
        escaped("a datagram left")


def abstract_socket():
    with open("/proc/net/unix") as f:
        names = [line.split()[-1] for line in f if "@" in line]
    if names:
        escaped("sockets outside: %s" % names[:3])


def interfaces():
    with open("/proc/net/dev") as f:
        rows = f.read().count(":")
    if rows != 1:
        escaped("%d interfaces" % rows)


def kill_outside():
    if succeeds(os.kill, pid, 0):
        escaped("process %d answers" % pid)


def kill_all():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    succeeds(os.kill, -1, signal.SIGTERM)  # whoever is left outside is counted by the test


def see_processes():
    seen = [d for d in os.listdir("/proc") if d.isdigit()]
    if len(seen) > 6:
        escaped("%d processes" % len(seen))


def parent_environ():
    for path in glob.glob("/proc/[0-9]*/environ"):
        if reads(path):
            escaped(path)


def own_environ():
    if any("canary" in value for value in os.environ.values()):
        escaped("a key in the environment")


def parent_memory():
    if int(os.stat("/proc/1").st_ctime) and succeeds(open, "/proc/1/mem", "rb"):
        escaped("memory of process 1")


def parent_root():
    if reads("/proc/1/root" + outside) or reads("/proc/1/cwd/../../.." + outside):
        escaped("through /proc/1")


def home():
    if reads(outside):
        escaped("the file itself")


def dotdot():
    if reads("../" * 20 + outside):
        escaped("by ..")


def symbolic_link():
    succeeds(os.symlink, outside, "link")
    if reads("link"):
        escaped("by a link")


def hard_link():
    if succeeds(os.link, outside, "hard"):
        escaped("by a hard link")


def descriptors():
    extra = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
    alive = [fd for fd in extra if succeeds(os.fstat, int(fd)) and int(fd) != 3]
    if alive:
        escaped("descriptors %s" % alive)


def device_file():
    if succeeds(os.mknod, "disk", 0o660 | 0o060000, os.makedev(254, 0)) and succeeds(open, "disk", "rb"):
        escaped("a block device")
    for path in glob.glob("/dev/*"):
        if os.path.basename(path) in ("sda", "vda", "nvme0n1", "mem", "kmem", "port", "kvm"):
            escaped(path)


def write_system():
    for path in ("/usr/x", "/etc/x", "/bin/x", "/x", "/dev/x", "/opt/x"):
        if succeeds(open, path, "w"):
            escaped(path)


def write_sysctl():
    for path in ("sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/overcommit_memory", "sysrq-trigger"):
        if succeeds(open, "/proc/" + path, "w"):
            escaped("/proc/" + path)


def mount():
    if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
        escaped("mount")


def new_namespace():
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0:
        if libc.mount(b"none", b"/usr", b"tmpfs", 0, None) == 0:
            escaped("mount in a namespace of its own")
        if reads(outside):
            escaped("the file, from a namespace of its own")


def user_namespace():
    """Refused as such: in one, a program has all capabilities again."""
    pid = call("clone", CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0 or libc.unshare(CLONE_NEWUSER) == 0:
        escaped("a user namespace of its own")
    if call("clone3", 0, 0) < 0 and ctypes.get_errno() != 38:  # ENOSYS, so that the C library uses clone
        escaped("clone3 looks at its flags")


def session_keys():
    """No namespace divides the keyring of the user's session."""
    if call("keyctl", 0, KEY_SPEC_SESSION_KEYRING, 0) >= 0:
        escaped("the session's keyring")
    if call("add_key", b"user", b"ipw-escape", b"x", 1, KEY_SPEC_SESSION_KEYRING) >= 0:
        escaped("a key in it")
    if call("request_key", b"user", b"ipw-escape", None, 0) >= 0 or ctypes.get_errno() != 1:
        escaped("a key was looked for")


def io_uring():
    if call("io_uring_setup", 8, ctypes.create_string_buffer(256)) >= 0 or ctypes.get_errno() != 38:
        escaped("io_uring")


def vsock():
    if succeeds(socket.socket, AF_VSOCK, socket.SOCK_STREAM):
        escaped("a socket to the host of this virtual machine")


def other_interface():
    """Calls by the numbers of 32-bit programs would go past the list."""
    if platform.machine() == "x86_64" and call(0x40000000 + 39) > 0:  # getpid of x32
        escaped("the x32 interface")


def chroot():
    if succeeds(os.chroot, "/tmp"):
        escaped("chroot")


def ptrace():
    for target in (1, pid, os.getppid()):
        if libc.ptrace(PTRACE_ATTACH, target, 0, 0) == 0:
            escaped("ptrace of %d" % target)


def setuid():
    if os.getuid() != 0 and succeeds(os.setuid, 0):
        escaped("setuid(0)")
    su = subprocess.run(["su", "-c", "id -u"], capture_output=True, input=b"\n")
    if os.getuid() != 0 and su.returncode == 0:
        escaped("su")


def terminal():
    for fd in (0, 1, 2):
        if succeeds(fcntl.ioctl, fd, TIOCSTI, b"x"):
            escaped("TIOCSTI on %d" % fd)
    if succeeds(open, "/dev/tty", "w"):
        escaped("/dev/tty")


def raise_limits():
    import resource
    for what in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
        soft, hard = resource.getrlimit(what)
        if hard == resource.RLIM_INFINITY:
            continue  # a sanitized build sets no limit of memory; other attempts show the rest
        try:
            resource.setrlimit(what, (hard, hard + 1))
            escaped("limit %d" % what)
        except (ValueError, OSError):
            pass


def memory():
    try:
        block = bytearray(8 << 30)
        escaped("%d bytes" % len(block))
    except MemoryError:
        pass


def memory_together():
    """Each keeps to the limit of a process (256M); together they would not."""
    for _ in range(5):
        if os.fork() == 0:
            block = bytearray(80 << 20)
            time.sleep(60)
            os._exit(len(block) & 1)
    time.sleep(30)
    escaped("five processes of 80 MB under 256M")


def deep_folders():
    """Below them the limit of the workspace would not be seen."""
    for _ in range(70):
        os.mkdir("d")
        os.chdir("d")
    with open("hidden", "wb") as f:
        f.write(bytes(1 << 20))
    time.sleep(30)
    escaped("a file that the limit of the workspace does not count")


def disk_tmp():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    written = 0
    try:
        for i in range(64):
            with open("/tmp/fill%d" % i, "wb") as f:
                for _ in range(16):
                    written += f.write(bytes(1 << 20))
    except OSError:
        pass
    if written > 300 << 20:
        escaped("%d bytes in /tmp" % written)


def disk_shm():
    written = 0
    try:
        with open("/dev/shm/fill", "wb") as f:
            for _ in range(1024):
                written += f.write(bytes(1 << 20))
    except OSError:
        pass
    if written > 300 << 20:
        escaped("%d bytes in /dev/shm" % written)


def fork_bomb():
    """Root's processes are not counted by RLIMIT_NPROC: there the number says nothing, only that all end."""
    n = 0
    try:
        while n < 700:
            if os.fork() == 0:
                time.sleep(600)
                os._exit(0)
            n += 1
    except OSError:
        pass
    if n >= 700 and os.getuid() != 0:
        escaped("%d processes" % n)


def orphan():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            libc.prctl(PR_SET_NAME, b"ipw-orphan", 0, 0, 0)
            time.sleep(600)
        os._exit(0)


def term_ignored():
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)
    print("held", flush=True)
    time.sleep(600)


def flood():
    block = b"held\n" * 20000
    for _ in range(400):
        os.write(1, block)


globals()[name]()
print("held")
