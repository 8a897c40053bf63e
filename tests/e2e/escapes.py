"""Hostile programs against a tool's sandbox: a table, a program on a line.

    escapes.py outside AGENT [options of run]     is outside: sets the targets up, runs the table, looks at the leftovers
    escapes.py inside NAME|together TARGETS       is inside: does one, or all that can share a sandbox

A row is (name, what must hold, the program).  Python is an expression, or a statement; with "$ " it is a line for sh.

    refused    an OSError that means no, or a status other than 0
    hidden     the same, or a result without the word canary
    nothing    the same, or an empty result
    ends       it may do what it likes: nothing of it is there when the sandbox has ended

Rows of ALONE have a sandbox of their own, and what must hold is how their call ends: held (it says so itself), full
(the limit of the workspace), killed (signal 9), late (ended at its time), any.  Programs that would harm the machine
if they came through are small.  Names with ipw-escape are of this file alone."""
import ctypes, errno, fcntl, glob, json, os, platform, resource, select
import signal, socket, struct, subprocess, sys, time

WORD, STAYS = b"canary", "617.25"  # what is to be found outside; what a sleeper is known by
TABLE = [
    # Files of the user and of the system.
    ("read the file itself", "hidden", "read(outside)"),
    ("read it by sh", "hidden", "$ cat $OUTSIDE"),
    ("read it by ..", "hidden", "read('../' * 20 + outside)"),
    ("read it by a symbolic link", "hidden", "os.symlink(outside, 'link'); read('link')"),
    ("read it by a link in a folder that is swapped", "hidden", "os.mkdir('real'); os.rename('real', 'was'); "
     "os.symlink(os.path.dirname(outside), 'real'); read('real/id')"),
    ("read it by a hard link", "hidden", "os.link(outside, 'hard'); read('hard')"),
    ("read it by a descriptor of /", "hidden", "read(outside[1:], dir_fd=os.open('/', os.O_PATH))"),
    ("read it by /proc/1/root", "hidden", "read('/proc/1/root' + outside)"),
    ("read it by /proc/1/cwd", "hidden", "read('/proc/1/cwd/../../../..' + outside)"),
    ("read it by a handle", "refused", "call('open_by_handle_at', -100, b'\\x08\\0\\0\\0\\x01\\0\\0\\0' + bytes(8), 0)"),
    ("read it by nsenter", "hidden", "$ nsenter -t 1 -m cat $OUTSIDE"),
    ("read it by a memory file's path", "hidden", "os.symlink(outside, '/tmp/l'); read('/proc/self/root/tmp/l')"),
    ("list the folder of the file", "refused", "os.listdir(os.path.dirname(outside))"),
    ("list the runner's folder", "nothing", "[f for f in os.listdir(runs) if f != 'tmp']"),
    ("other workspaces", "nothing", "os.listdir(os.path.dirname(workspace))[1:]"),
    ("password hashes", "refused", "open('/etc/shadow')"),
    ("keys of ssh", "refused", "os.listdir('/etc/ssh')"),
    ("the home of root", "refused", "os.listdir('/root')"),
    ("homes", "nothing", "os.listdir('/home')"),
    ("/var", "refused", "os.listdir('/var')"),
    ("/run", "refused", "os.listdir('/run')"),
    ("/sys", "refused", "os.listdir('/sys')"),
    ("/boot", "refused", "os.listdir('/boot')"),
    ("the host's /tmp", "nothing", "[f for f in os.listdir('/tmp') if not os.getcwd().startswith('/tmp/' + f) and f != 'l']"),
    ("the host's /dev/shm", "nothing", "os.listdir('/dev/shm')"),
    ("disks", "nothing", "[d for d in os.listdir('/dev') if d[:2] in ('sd', 'vd', 'nv', 'dm', 'lo', 'me', 'km', 'kv')]"),
    ("inotify of the folder outside", "refused", "watch(os.path.dirname(outside))"),
    ("fanotify", "refused", "call('fanotify_init', 0, 0)"),
    # Writing.
    ("write /usr", "refused", "open('/usr/ipw-escape', 'w')"),
    ("write /etc", "refused", "open('/etc/ipw-escape', 'w')"),
    ("write /", "refused", "open('/ipw-escape', 'w')"),
    ("write /dev", "refused", "open('/dev/ipw-escape', 'w')"),
    ("write /opt", "refused", "open('/opt/ipw-escape', 'w')"),
    ("write beside the workspace", "ends", "open(workspace + '/../ipw-escape', 'w')"),
    ("write a program", "refused", "open('/usr/bin/env', 'r+b')"),
    ("write the helper", "refused", "open('/ipw-agent', 'r+b')"),
    ("write the helper by /proc/1/exe", "refused", "open('/proc/1/exe', 'r+b')"),
    ("replace the helper", "refused", "os.rename('/ipw-agent', '/tmp/x')"),
    ("remove a program", "refused", "os.remove('/usr/bin/env')"),
    ("rename a program", "refused", "os.rename('/usr/bin/env', '/usr/bin/ipw-escape')"),
    ("link a program", "refused", "os.link('/usr/bin/env', 'env')"),
    ("mode of a program", "refused", "os.chmod('/usr/bin/env', 0o777)"),
    ("times of a program", "refused", "os.utime('/usr/bin/env')"),
    ("attribute of a program", "refused", "os.setxattr('/usr/bin/env', 'user.ipw', b'x')"),
    ("flags of a program", "refused", "ioctl(os.open('/usr/bin/env', os.O_RDONLY), 0x40086602, struct.pack('l', 0x10))"),
    ("a fifo in /usr", "refused", "os.mkfifo('/usr/ipw-escape')"),
    ("a link in /etc", "refused", "os.symlink('/tmp', '/etc/ipw-escape')"),
    ("core pattern", "refused", "open('/proc/sys/kernel/core_pattern', 'w')"),
    ("host name in /proc", "refused", "open('/proc/sys/kernel/hostname', 'w')"),
    ("overcommit", "refused", "open('/proc/sys/vm/overcommit_memory', 'w')"),
    ("magic keys", "refused", "open('/proc/sysrq-trigger', 'w')"),
    ("score of the out-of-memory killer", "refused", "open('/proc/self/oom_score_adj', 'w').write('-1000')"),
    ("user map", "refused", "open('/proc/self/uid_map', 'w').write('0 0 1')"),
    # Files that would be hard to remove, or more than they seem.
    ("a setuid file", "ends", "open('suid', 'w').close(); os.chmod('suid', 0o6777)"),
    ("capabilities of a file", "refused", "open('c', 'w').close(); os.setxattr('c', 'security.capability', "
     "bytes.fromhex('0100000202000000000000000000000000000000'))"),
    ("an immutable file", "refused", "ioctl(os.open('immutable', os.O_CREAT), 0x40086602, struct.pack('l', 0x10))"),
    ("a file of another user", "refused EINVAL", "open('o', 'w').close(); os.chown('o', 1, 1)"),
    ("a fifo, a socket, odd names", "ends", "os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('sock'); "
     "open(b'\\xff\\n\\x1b[31m', 'w').close(); open('n' * 255, 'w').close(); os.symlink('loop', 'loop')"),
    ("a block device", "refused", "os.mknod('disk', 0o60660, os.makedev(254, 0))"),
    ("a character device", "refused", "os.mknod('mem', 0o20660, os.makedev(1, 1))"),
    ("a file of a terabyte", "refused EFBIG", "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); os.truncate(os.open('big', os.O_CREAT | os.O_RDWR), 1 << 40)"),
    ("thaw the file system", "refused", "ioctl(os.open('.', os.O_RDONLY), 0xC0045878, struct.pack('i', 0))"),
    ("a core file", "nothing", "resource.getrlimit(resource.RLIMIT_CORE)[1]"),
    # Network and sockets.
    ("a port of this machine", "refused", "socket.create_connection(('127.0.0.1', port), 2)"),
    ("a port by IPv6", "refused", "socket.create_connection(('::1', port), 2)"),
    ("another machine", "refused", "socket.create_connection(('192.0.2.1', 80), 2)"),
    ("a datagram", "refused", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))"),
    ("a datagram to all", "refused", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('224.0.0.1', 5353))"),
    ("a name", "refused", "socket.getaddrinfo('example.org', 80)"),
    ("interfaces", "nothing", "[i for _, i in socket.if_nameindex() if i != 'lo']"),
    ("an abstract socket", "refused", "connect('\\0' + abstract)"),
    ("abstract sockets in /proc", "hidden", "read('/proc/net/unix')"),
    ("a socket by its path", "refused", "connect(os.path.dirname(outside) + '/socket')"),
    ("the socket of docker", "refused", "connect('/var/run/docker.sock')"),
    ("the socket of dbus", "refused", "connect('/run/dbus/system_bus_socket')"),
    ("raw packets", "refused", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768)"),
    ("raw IP", "refused", "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"),
    ("raw IPv6", "refused", "socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)"),
    ("a vsock stream", "refused", "socket.socket(40, socket.SOCK_STREAM)"),
    ("a vsock datagram", "refused", "socket.socket(40, socket.SOCK_DGRAM)"),
    ("bluetooth", "refused", "socket.socket(31, socket.SOCK_RAW, 1)"),
    ("audit", "refused", "netlink(9, 1001)"),
    ("an interface of its own", "refused", "netlink(0, 16)"),
    ("set an address by ioctl", "refused", "s = socket.socket(); ioctl(s.fileno(), 0x8914, struct.pack('16sh22x', b'lo', 0))"),
    # Processes outside.
    ("signal a process", "refused", "os.kill(pid, 0)"),
    ("signal it by sh", "refused", "$ kill -0 $TARGET"),
    ("signal a process group", "refused", "os.killpg(pid, 0)"),
    ("signal by a descriptor", "refused", "call('pidfd_open', pid, 0)"),
    ("signal with a value", "refused", "call('rt_sigqueueinfo', pid, 10, bytes(128))"),
    ("join its process group", "refused", "os.setpgid(0, pid)"),
    ("own SIGIO to it", "refused", "fcntl.fcntl(0, fcntl.F_SETOWN, pid)"),
    ("trace it", "refused", "call('ptrace', 16, pid, 0, 0)"),
    ("trace the first process", "refused", "call('ptrace', 0x4206, 1, 0, 0)"),
    ("read memory of the first process", "refused", "open('/proc/1/mem', 'rb')"),
    ("memory by process_vm_readv", "refused", "vm(pid)"),
    ("memory of the first by process_vm_readv", "refused", "vm(1)"),
    ("descriptors of the first process", "refused", "[os.readlink('/proc/1/fd/' + fd) for fd in '012']"),
    ("compare with it", "refused", "call('kcmp', os.getpid(), pid, 0, 0, 0)"),
    ("processes", "nothing", "[d for d in os.listdir('/proc') if d.isdigit()][6:]"),
    ("environment of all", "hidden", "b''.join(map(tried, glob.glob('/proc/[0-9]*/environ')))"),
    ("own environment", "hidden", "repr(os.environ).encode()"),
    ("an environment by sh", "hidden", "$ env; cat /proc/self/environ"),
    ("command lines", "nothing", "[c for c in map(tried, glob.glob('/proc/[0-9]*/cmdline')) if b'outside\\0' in c]"),
    ("descriptors that were left open", "nothing", "left_open()"),
    ("scheduling of it", "refused", "os.setpriority(os.PRIO_PROCESS, pid, 19)"),
    # Keys, shared memory, messages.
    ("the session's keyring", "refused", "call('keyctl', 0, -3, 0)"),
    ("a key in it", "refused", "call('add_key', b'user', b'ipw-escape', b'x', 1, -3)"),
    ("look for a key", "refused", "call('request_key', b'user', b'ipw-canary', 0, 0)"),
    ("join the session of keys", "refused", "call('keyctl', 1, 0)"),
    ("keys in /proc", "hidden", "read('/proc/keys')"),
    ("shared memory of System V", "refused", "call('shmget', shm, 0, 0)"),
    ("a message queue", "refused", "check(libc.mq_open(b'/ipw-canary', 0))"),
    ("shared memory by its name", "refused", "open('/dev/shm/ipw-canary-' + abstract)"),
    # Namespaces, mounts, rights.
    ("a user namespace", "refused", "check(libc.unshare(0x10000000))"),
    ("a user namespace by clone", "refused", "call('clone', 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)"),
    ("a user namespace by clone3", "refused", "call('clone3', 0, 0)"),
    ("a user namespace by sh", "refused", "$ unshare -r true"),
    ("a mount namespace", "refused", "check(libc.unshare(0x20000))"),
    ("enter a namespace", "refused", "check(libc.setns(os.open('/proc/1/ns/mnt', os.O_RDONLY), 0))"),
    ("mount", "refused", "check(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))"),
    ("mount again, to write", "refused", "check(libc.mount(b'none', b'/usr', None, 32, None))"),
    ("mount by sh", "refused", "$ mount -t tmpfs none /tmp"),
    ("unmount", "refused", "check(libc.umount2(b'/tmp', 2))"),
    ("a file system by fsopen", "refused", "call('fsopen', b'tmpfs', 0)"),
    ("a copy of a mount", "refused", "call('open_tree', -100, b'/', 1)"),
    ("attributes of a mount", "refused", "call('mount_setattr', -100, b'/usr', 0, struct.pack('4Q', 0, 1, 0, 0), 32)"),
    ("another root", "refused", "call('pivot_root', b'/tmp', b'/tmp')"),
    ("chroot", "refused", "os.chroot('/tmp')"),
    ("another user", "refused EINVAL", "os.setuid(os.getuid() + 1)"),
    ("groups", "refused", "os.setgroups([0])"),
    ("root by su", "refused", "$ su -c id </dev/null && [ $(id -u) != 0 ]"),
    ("capabilities", "nothing", "int([l for l in open('/proc/self/status') if l.startswith('CapEff')][0].split()[1], 16)"),
    ("capabilities after an exec", "hidden", "$ [ $(grep CapEff /proc/self/status | tr -d 'CapEf:0\\t') ] && echo canary"),
    ("limits", "nothing", "raised()"),
    ("nice", "refused", "os.nice(-5)"),
    ("real time", "refused", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))"),
    ("first to the disk", "refused", "call('ioprio_set', 1, 0, 1 << 13)"),
    # The machine.
    ("the kernel's log", "refused", "call('syslog', 3, ctypes.create_string_buffer(64), 64)"),
    ("the kernel's log in /proc", "refused", "open('/proc/kmsg', 'rb')"),
    ("the kernel's memory", "refused", "open('/proc/kcore', 'rb')"),
    ("addresses of the kernel", "nothing", "[l for l in open('/proc/kallsyms') if not l.startswith('0' * 16)][:1]"),
    ("a clock", "refused", "time.clock_settime(time.CLOCK_REALTIME, time.time())"),
    ("a clock's speed", "refused", "call('adjtimex', struct.pack('Q', 2) + bytes(248))"),
    ("reboot", "refused", "call('reboot', 0xfee1dead, 672274793, 0, 0)"),
    ("another kernel", "refused", "call('kexec_load', 0, 0, 0, 0)"),
    ("another kernel from a file", "refused", "call('kexec_file_load', -1, -1, 0, 0, 0)"),
    ("a module", "refused", "call('init_module', b'x', 1, b'')"),
    ("a module from a file", "refused", "call('finit_module', 0, b'', 0)"),
    ("take a module out", "refused", "call('delete_module', b'ipw_escape', 0)"),
    ("swap", "refused", "call('swapon', b'/tmp/x', 0)"),
    ("no swap", "refused", "call('swapoff', b'/tmp/x')"),
    ("quotas", "refused", "call('quotactl', 0x800002 << 8, b'/dev/sda', 0, 0)"),
    ("accounting", "refused", "call('acct', 0)"),
    ("host name", "refused", "call('sethostname', b'x', 1)"),
    ("hang up", "refused", "call('vhangup')"),
    ("ports of the processor", "refused", "call('iopl', 3)"),
    ("bpf", "refused", "call('bpf', 0, struct.pack('4I', 2, 4, 4, 1) + bytes(56), 72)"),
    ("counters of the machine", "refused", "call('perf_event_open', struct.pack('2IQ', 1, 112, 0) + bytes(96), -1, 0, -1, 0)"),
    ("counters of its own", "refused", "call('perf_event_open', struct.pack('2I4QQ', 1, 112, 0, 0, 0, 0, 0x63) + bytes(64), 0, -1, -1, 0)"),
    ("userfaultfd", "refused", "call('userfaultfd', 1)"),
    ("io_uring", "refused", "call('io_uring_setup', 8, ctypes.create_string_buffer(256))"),
    ("the x32 interface", "refused", "call(0x40000000 + 39)"),
    ("an alarm that wakes the machine", "refused", "check(libc.timerfd_create(8, 0))"),
    # Terminals.
    ("type into a terminal", "refused", "[ioctl(fd, 0x5412, b'x') for fd in (0, 1, 2)]"),
    ("paste into a terminal", "refused", "ioctl(0, 0x541C, b'\\x03')"),
    ("the terminal", "refused", "open('/dev/tty', 'w')"),
    ("take a terminal", "refused", "ioctl(0, 0x540E, 1)"),
    ("terminals of others", "nothing", "[t for t in os.listdir('/dev/pts') if t != 'ptmx']"),
    # Those who would stay.
    ("a sleeper", "ends", "$ sleep 617.25 &"),
    ("a sleeper with closed descriptors", "ends", "$ sleep 617.25 <&- >&- 2>&- &"),
    ("a session of its own", "ends", "$ setsid sleep 617.25 >/dev/null 2>&1 &"),
    ("nohup", "ends", "$ nohup sleep 617.25 >/dev/null 2>&1 &"),
    ("deaf to signals", "ends", "$ (trap '' TERM INT HUP QUIT; sleep 617.25) >/dev/null 2>&1 &"),
    ("a program that is removed", "ends", "$ cp /bin/sleep s; (./s 617.25 >/dev/null 2>&1 &); rm s"),
    ("two forks and a session", "ends", "daemon()"),
    ("a daemon of another name", "ends", "daemon(lambda: libc.prctl(15, b'ipw-orphan', 0, 0, 0))"),
    ("a daemon without a death signal", "ends", "daemon(lambda: libc.prctl(1, 0, 0, 0, 0))"),
    ("a stopped daemon", "ends", "daemon(lambda: os.kill(os.getpid(), signal.SIGSTOP))"),
    ("a subreaper", "ends", "libc.prctl(36, 1, 0, 0, 0); daemon()"),
    ("a traced child", "ends", "daemon(lambda: libc.ptrace(0, 0, 0, 0))"),
    ("a program in memory", "ends", "daemon(in_memory)"),
    ("a chain of forks", "ends", "daemon(chain)"),
    ("a waiter at a fifo", "ends", "os.mkfifo('wait'); daemon(lambda: open('wait'))"),
    ("many threads", "ends", "daemon(threads)"),
]
ALONE = [
    ("signal to all", "any", "signal.signal(15, signal.SIG_IGN); os.kill(-1, 15); os.kill(-1, 9)"),
    ("signal to its group", "any", "os.kill(0, 9)"),
    ("memory", "held", "raises(MemoryError, bytearray, 8 << 30)"),
    ("memory of all together", "killed", "[fork(lambda: (bytearray(80 << 20), time.sleep(60))) for _ in range(5)]; time.sleep(60)"),
    ("memory that no process shows", "killed", "[hold_memory(i) for i in range(40)]; time.sleep(60)"),
    ("deep folders", "full", "[(os.mkdir('d'), os.chdir('d')) for _ in range(70)]; open('hidden', 'wb').write(bytes(1 << 20)); time.sleep(60)"),
    ("many files", "full", "[open('f%d' % i, 'w').close() for i in range(12000)]; time.sleep(60)"),
    ("one file after another", "full", "[fill('f%d' % i, 32) for i in range(16)]; time.sleep(60)"),
    ("files that are renamed", "full", "[(fill('new', 32), os.rename('new', 'o%d' % i)) for i in range(16)]; time.sleep(60)"),
    ("holes that are filled", "full", "[(fill('h%d' % i, 1, 64 << 20), fill('h%d' % i, 32)) for i in range(16)]; time.sleep(60)"),
    ("files that are removed and kept", "full", "[(keep(fill('u', 32)), os.remove('u')) for _ in range(16)]; time.sleep(60)"),
    ("a folder without rights", "any", "os.makedirs('none/below'); open('none/below/f', 'w').close(); os.chmod('none', 0)"),
    ("a full /tmp", "held", "at_most(300, lambda i: fill('/tmp/f%d' % i, 16))"),
    ("a full /dev/shm", "held", "at_most(300, lambda i: fill('/dev/shm/f%d' % i, 16))"),
    ("a bomb of forks", "held", "bomb()"),
    ("deaf to its end", "late", "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 15)]; time.sleep(600)"),
    ("stopped", "late", "os.kill(os.getpid(), signal.SIGSTOP)"),
    ("a flood", "held", "[os.write(1, b'flood\\n' * 20000) for _ in range(400)]"),
]
NO = {"EPERM", "EACCES", "ENOSYS", "EROFS", "ENOENT", "ESRCH", "ENXIO", "ENODEV", "ENOTTY", "EXDEV", "ETXTBSY", "ECONNREFUSED",
      "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP"}

# ---- inside ----

libc = ctypes.CDLL(None, use_errno=True)
# Numbers on x86-64 and on 64-bit ARM; from 424 on they are the same everywhere.
NUMBERS = {"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "clone": (56, 220), "ptrace": (101, 117),
           "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "kexec_load": (246, 104),
           "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
           "open_by_handle_at": (304, 265), "process_vm_readv": (310, 270), "kcmp": (312, 272), "quotactl": (179, 60),
           "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "adjtimex": (159, 171),
           "reboot": (169, 142), "pivot_root": (155, 41), "fanotify_init": (300, 262), "sethostname": (170, 161),
           "iopl": (172, 0x40000000), "vhangup": (153, 58), "ioprio_set": (251, 30), "rt_sigqueueinfo": (129, 138),
           "shmget": (29, 194), "io_uring_setup": (425,) * 2, "fsopen": (430,) * 2, "open_tree": (428,) * 2, "pidfd_open": (434,) * 2,
           "clone3": (435,) * 2, "mount_setattr": (442,) * 2}
kept = []


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def call(name, *args):
    number = NUMBERS[name][platform.machine() == "aarch64"] if name in NUMBERS else name
    return check(libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in args)))


def ioctl(fd, request, argument):
    return fcntl.ioctl(fd, request, argument)


def read(path, dir_fd=None):
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=dir_fd), "rb") as f:
        return f.read(1 << 20)


def tried(path):
    try:
        return read(path)
    except OSError:
        return b""


def connect(path):
    socket.socket(socket.AF_UNIX).connect(path)


def watch(path):
    return check(libc.inotify_add_watch(libc.inotify_init(), path.encode(), 0xfff))


def vm(target):
    """One byte of the target's memory, from where the program is that runs this one."""
    here, there = ctypes.create_string_buffer(8), id(None)
    vector = lambda at: struct.pack("2Q", at, 8)
    return call("process_vm_readv", target, vector(ctypes.addressof(here)), 1, vector(there), 1, 0)


def netlink(protocol, kind):
    """Sends one message that changes something, and reads the answer, which is an error."""
    s = socket.socket(16, socket.SOCK_RAW, protocol)
    body = struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH8s", 12, 3, b"ipw0") + struct.pack("HHHH5s3x", 16, 18, 9, 1, b"dummy")
    s.send(struct.pack("IHHII", 16 + len(body), kind, 5 | 0x600, 1, 0) + body)
    s.settimeout(2)
    answer = s.recv(4096)
    number = struct.unpack_from("i", answer, 16)[0]
    if struct.unpack_from("H", answer, 4)[0] == 2 and number:
        raise OSError(-number, "netlink")


def left_open():
    """Descriptors besides the pipes of this program."""
    return [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and int(fd) not in known and os.path.exists("/proc/self/fd/" + fd)]


def raised():
    """Limits that could be raised."""
    higher = []
    for what in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC):
        hard = resource.getrlimit(what)[1]
        try:
            if hard != resource.RLIM_INFINITY:  # a sanitized build sets no limit of memory
                resource.setrlimit(what, (hard, hard + 1))
                higher.append(what)
        except (ValueError, OSError):
            pass
    return higher


def fork(f):
    pid = os.fork()
    if pid == 0:
        f()
        os._exit(0)
    return pid


def daemon(f=lambda: None):
    def second():
        os.setsid()
        fork(lambda: (signal.alarm(0), [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)], f(), time.sleep(600)))
    os.waitpid(fork(second), 0)


def in_memory():
    fd = os.memfd_create("ipw-orphan", 0)
    os.write(fd, read("/bin/sleep"))
    os.execve(fd, ["sleep", STAYS], {})


def chain():
    while True:
        if os.fork():
            os._exit(0)
        time.sleep(0.001)


def threads():
    import threading
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(600,)).start()


def raises(what, f, *args):
    try:
        f(*args)
    except what:
        return
    raise AssertionError("it was given")


def hold_memory(i):
    """32 MB in a file of memory, which is in no process's memory."""
    fd = keep(os.memfd_create("ipw-escape%d" % i, 0))
    for _ in range(32):
        os.write(fd, bytes(1 << 20))


def keep(fd):
    kept.append(fd)
    return fd


def fill(path, mib, start=0):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.lseek(fd, start, 0)
    for _ in range(mib):
        os.write(fd, bytes(1 << 20))
    return fd


def at_most(mib, write):
    try:
        for i in range(64):
            os.close(write(i))
    except OSError:
        return
    raise AssertionError("more than %d MB" % mib)


def bomb():
    """Root's processes are not counted by RLIMIT_NPROC: there the number says nothing, only that all end."""
    n = 0
    try:
        while n < 700:
            fork(lambda: time.sleep(600))
            n += 1
    except OSError:
        pass
    assert n < 700 or os.getuid() == 0, "%d processes" % n


def sh(line):
    with open("out", "w+b") as out:  # no pipe, whose end a program that stays would hold
        r = subprocess.run(["sh", "-c", line[2:]], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL,
                           env=dict(os.environ, OUTSIDE=outside, TARGET=str(pid)))
        if r.returncode:
            raise PermissionError(errno.EPERM, "status %d" % r.returncode)
        return read("out")


def python(text):
    """Statements, whose value is that of the last one if it is an expression."""
    before, _, last = text.rpartition("; ")
    exec(before, globals())
    try:
        code = compile(last, "row", "eval")
    except SyntaxError:
        return exec(last, globals())
    return eval(code, globals())


def verdict(holds, program):
    what, *also = holds.split()
    try:
        got = sh(program) if program.startswith("$ ") else python(program)
    except OSError as e:
        no = errno.errorcode.get(e.errno, "") in NO.union(also) or isinstance(e, (socket.gaierror, TimeoutError))
        return "held" if no or what == "ends" else "UNCLEAR: %s" % e
    except Exception as e:
        return "UNCLEAR: %r" % e
    if what == "ends" or what == "hidden" and WORD not in (got or b"") or what == "nothing" and not got:
        return "held"
    return "ESCAPED: %.200r" % (got,)


def together():
    """Each row has a process of its own, which what it leaves behind outlives."""
    for i, (name, holds, program) in enumerate(TABLE):
        os.mkdir("row%d" % i)
        out, into = os.pipe()
        known.update((out, into))
        child = os.fork()
        if child == 0:
            os.close(out)
            signal.alarm(15)
            os.chdir("row%d" % i)
            os.write(into, verdict(holds, program).encode(errors="replace")[:4000])
            os._exit(0)
        os.close(into)
        said = os.read(out, 4096) if select.select([out], [], [], 20)[0] else b""
        os.close(out)
        os.waitpid(child, 0)
        print("%s: %s" % (name, said.decode() or "UNCLEAR: it said nothing"), flush=True)
    print("%d rows" % len(TABLE))


def inside(name):
    if name == "together":
        return together()
    exec(dict((row[0], row[2]) for row in ALONE)[name], globals())
    print("held", flush=True)


# ---- outside ----

LEVEL = "=" * 9  # of the brackets around a text that has brackets itself
AGENT = """
local fs, proc = require "ipw.fs", require "ipw.proc"
return { name = "escape", run = function(query)
  local name = query.prompt:match "row: (.-) %."
  fs.write("escapes.py", SOURCE)
  local r, why = proc.run { "python3", "escapes.py", "inside", name, TARGETS, output = "256K",
    seconds = name == "together" and 120 or (LATE[name] and 2 or 40), memory = HUNGRY[name] and "256M" or nil }
  if not r then return "full: " .. why end
  if name == "together" then return r.stdout .. r.stderr end
  return (r.timed_out and "late" or r.signal and "signal " .. r.signal or r.stdout:find "held" and "held" or "code " .. r.code)
    .. "\\n" .. r.stderr:sub(-500)
end }
"""


def lua(value):
    if isinstance(value, dict):
        return "{%s}" % ",".join("[ %s ]=true" % lua(key) for key in value)
    return "[%s[\n%s]%s]" % (LEVEL, value, LEVEL)


def put_key():
    """A key in a session keyring of our own, which the programs that we start have, too."""
    try:
        call("keyctl", 1, 0)
        call("add_key", b"user", b"ipw-canary", WORD, len(WORD), -3)
    except OSError as e:
        print("NOT CHECKED: keys: %s" % e)


def targets(folder):
    """What there is to be found outside; returns it, and what has to be kept."""
    os.makedirs(folder + "/home")
    with open(folder + "/home/id", "wb") as f:
        f.write(WORD)
    os.environ["OPENAI_API_KEY"] = "canary-key"
    abstract, shm = "canary-%d" % os.getpid(), 0x1d0000 + os.getpid() % 65536
    listener, named, by_path = socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    listener.bind(("127.0.0.1", 0))
    named.bind("\0" + abstract)
    by_path.bind(folder + "/home/socket")
    for s in (listener, named, by_path):
        s.listen(8)
    with open("/dev/shm/ipw-canary-" + abstract, "wb") as f:
        f.write(WORD)
    segment = check(libc.shmget(shm, 4096, 0o1600))
    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    put_key()
    found = {"outside": folder + "/home/id", "runs": folder, "pid": sleeper.pid, "port": listener.getsockname()[1],
             "abstract": abstract, "shm": shm}
    return found, (sleeper, segment, listener, named, by_path)


def processes():
    """Those of the table: by their words, as each has them of its parent, and by the sleepers'."""
    alive = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            with open("/proc/%s/stat" % pid) as f:
                state = f.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if (b"inside" in words and b"escapes.py" in words or STAYS.encode() in words) and state != "Z":
            alive.append((int(pid), words))
    return alive


def faults(out, sizes):
    """What does not hold: of the table by its lines, of the others by how they ended."""
    rows = [json.loads(line) for line in open(out + "/traces.jsonl")]
    by = {q["query_id"]: (q["response_text"] or q.get("error") or "").strip() for q in rows}
    said = [line for line in by.pop("together", "").split("\n") if line]
    bad = [line for line in said[:-1] if not line.endswith(": held")]
    if len(said) != len(TABLE) + 1 or said[-1] != "%d rows" % len(TABLE):
        bad.append("together: %s" % said[-3:])
    for name, ends, _ in ALONE:
        want = {"full": "full:", "killed": "signal 9"}.get(ends, ends)
        if name in sizes and ends != "any" and not by.get(name, "").startswith(want):
            bad.append("%s: %s, not %s" % (name, by.get(name), ends))
    return bad


def outside_main(agent, *options):
    folder, unsafe = os.getcwd() + "/drill-%d" % os.getuid(), "--unsafe-tools" in options
    os.makedirs(folder + "/tmp")
    found, held = targets(folder)
    names = [] if unsafe else [row[0] for row in ALONE]
    if os.environ.get("IPW_SANITIZE"):
        names.remove("memory")  # a sanitized build gives its programs no limit of address space
    with open(folder + "/rows.jsonl", "w") as f:
        for name in ["together"] + names:
            f.write(json.dumps({"id": name, "question": "row: %s ." % name}) + "\n")
    with open(__file__) as f, open(folder + "/escape.lua", "w") as to:
        to.write("local SOURCE, TARGETS = %s, %s\n" % (lua(f.read()), lua(json.dumps(found))))
        to.write("local LATE, HUNGRY = %s, %s\n" % tuple(lua({r[0]: 1 for r in ALONE if r[1] == end}) for end in ("late", "killed")))
        to.write(AGENT)
    began = time.monotonic()
    run = subprocess.run([agent, "run", folder + "/escape.lua", "--dataset", folder + "/rows.jsonl", "--model", "demo", "-q",
                          "--telemetry", "none", "--concurrency", "6", "--output", folder + "/run", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, TMPDIR=folder + "/tmp"))
    bad = ["run: %s" % run.stdout.decode()] if run.returncode else faults(folder + "/run", names)
    sleeper, segment = held[0], held[1]
    bad += ["it lives: %s" % one for one in processes()]
    bad += ["a file stays: %s" % os.path.join(at, f) for at, folders, files in os.walk(folder + "/tmp") for f in files + folders]
    bad += ["outside was touched"] * (sleeper.poll() is not None or read(found["outside"]) != WORD)
    sleeper.kill()
    libc.shmctl(segment, 0, None)
    os.remove("/dev/shm/ipw-canary-" + found["abstract"])
    print("\n".join(bad))
    print("%d programs, %d do not hold, %.1f s" % (len(TABLE) + len(names), len(bad), time.monotonic() - began))
    sys.exit(bool(bad))


known = set()
if sys.argv[1] == "outside":
    outside_main(*sys.argv[2:])
else:
    globals().update(json.loads(sys.argv[3]), workspace=os.getcwd())
    inside(sys.argv[2])
