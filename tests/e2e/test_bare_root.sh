# The Debian package in a bare Debian 12: installed with its dependencies, the first command of README, `man`, completion,
# removed with nothing left; then README's second line in it, as an ordinary user, with user namespaces and without.
# Needs root, debootstrap, Debian's mirror and IPW_LONG=1, because it takes half an hour (IPW_BARE_ROOT=DIR: such a root
# to copy):
#
#     IPW_LONG=1 ctest --preset dev -R e2e.bare_root
# Long: it installs a Debian.
. "$(dirname "$0")/lib.sh"
[ "${IPW_LONG-}" = 1 ] || skip "IPW_LONG=1 installs a Debian of 300 MB into a folder, and tests in it for half an hour"
[ "$(id -u)" -eq 0 ] || skip "only root can enter another root"
for needed in debootstrap cpack dpkg-deb dpkg-shlibdeps; do
    command -v $needed >/dev/null || skip "no $needed"
done
ROOT=$WORK/root

step "a bare Debian"
if [ -n "${IPW_BARE_ROOT-}" ]; then
    cp -a "$IPW_BARE_ROOT" "$ROOT" || fail "copy"
else
    mirror=$(sed -n 's,^\(URIs: \|deb \)\(http[^ ]*/debian/*\).*,\2,p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    debootstrap --variant=minbase bookworm "$ROOT" ${mirror:-http://deb.debian.org/debian} >out 2>&1 || fail "debootstrap"
fi
# In a mount namespace of its own, so that no /proc is left there.
inside() {
    unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$ROOT" \
        /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}
files() { (cd "$ROOT" && find etc usr opt srv root home bin sbin lib var/lib ! -path 'var/lib/apt/*' ! -path 'var/lib/dpkg/*' | sort); }

step "the package, in the way of its user"
(cd "$IPW_BINARY_DIR" && cpack -G DEB -B "$WORK/made" >"$WORK/out" 2>&1) || fail "cpack"
cp made/*.deb "$ROOT/tmp/ipw-agent.deb"
inside apt-get update >out 2>&1 || fail "apt-get update"
inside apt-get install -y --no-install-recommends man-db bash-completion >out 2>&1 || fail "man and completion"
# What the package brings along stays; what it is itself must go.
inside apt-get install -y --no-install-recommends /tmp/ipw-agent.deb >out 2>&1 || fail "install"
inside dpkg -s ipw-agent >out || fail "dpkg -s"
check_out "Status: install ok installed"

step "the first command of README"
inside ipw-agent run react --dataset gaia --limit 3 --model demo -o /tmp/run >out 2>err || fail "run"
check_out "solved "
inside ipw-agent validate /tmp/run >out 2>err || fail "validate"

step "man and completion"
inside man -P cat ipw-agent-run >out 2>err || fail "man"
check_out "--max-turns"
inside bash -c '. /usr/share/bash-completion/bash_completion
    _completion_loader ipw-agent
    COMP_WORDS=(ipw-agent run --max-tu) COMP_CWORD=2
    _ipw_agent
    echo "${COMPREPLY[*]}"' >out 2>err || fail "completion"
check_out "--max-turns"

step "removed with nothing left"
inside apt-get purge -y ipw-agent >out 2>&1 || fail "purge"
files >left
grep ipw-agent left && fail "files of the package are left"
assert_lacks "$ROOT/var/lib/dpkg/status" "Package: ipw-agent"
# second_line HOW: README's second line in a fresh copy.  In a chroot the kernel refuses user namespaces; where the root
# is the file system's own, by pivot_root, it makes them.  What failed once and passed alone is no failure (3).
second_line() {
    inside sh -c 'rm -rf /home/user/ipw-agent && mkdir /home/user/ipw-agent' || fail "folder"
    (cd "$IPW_SOURCE_DIR" && git -c safe.directory="$PWD" ls-files -z -co --exclude-standard |
        tar -cf - --null --ignore-failed-read -T -) | tar -xf - -C "$ROOT/home/user/ipw-agent" --no-same-owner || fail "copy"
    inside chown -R user: /home/user
    # shellcheck disable=SC2016 # the other shell's variables
    unshare --mount --pid --fork sh -c 'cd "$0" && mount --rbind . . && cd "$0" && mount --rbind /dev dev &&
        mount --rbind /sys sys && mount -t proc proc proc || exit
        how=$1
        shift
        [ "$how" = refused ] || { pivot_root . mnt && cd / && umount -l /mnt || exit; }
        exec chroot . "$@"' "$ROOT" "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        setpriv --reuid=user --regid=user --init-groups --reset-env \
        sh -c 'cd ~/ipw-agent && if unshare --user true; then echo namespaces: made; else echo namespaces: refused; fi && '"$line" \
        >"$WORK/$1.log" 2>&1 </dev/null
    code=$?
    grep -q "^namespaces: $1" "$WORK/$1.log" || fail "not a root where they are $1: $(tail -n 5 "$WORK/$1.log")"
    [ $code -eq 0 ] || [ $code -eq 3 ] || fail "exit status $code: $(grep -E 'FAILED|Failed' "$WORK/$1.log" | tail -n 20)"
}

step "README's second line"
rm -rf "$ROOT/tmp/run" "$ROOT/tmp/edited"
line=$(sed -n 's/^    \(scripts\/bootstrap --test --packages && .*\)$/\1/p' "$IPW_SOURCE_DIR/README.md")
[ -n "$line" ] || fail "README has no second line"
inside apt-get install -y --no-install-recommends git sudo >out 2>&1 || fail "git, sudo"
inside useradd --create-home --shell /bin/sh user || fail "user"
echo 'user ALL=(ALL) NOPASSWD: ALL' >"$ROOT/etc/sudoers.d/user"
step "README's second line, with user namespaces"
second_line made
step "README's second line, without"
second_line refused
rm -rf "$ROOT" # end_test looks at every run below
end_test
