# The Debian package: made by cpack, accepted by lintian, its program runs from where it was unpacked.
. "$(dirname "$0")/lib.sh"
for needed in cpack dpkg-deb dpkg-shlibdeps; do
    command -v $needed >/dev/null || skip "no $needed"
done
[ -z "${IPW_SANITIZE-}" ] || skip "a package of a sanitized build is no package"

step "cpack"
export DEBEMAIL=maker@ipw-agent.org DEBFULLNAME="A Maker"
(cd "$IPW_BINARY_DIR" && cpack -G DEB -B "$WORK/made" -D CPACK_PACKAGE_CONTACT="$DEBFULLNAME <$DEBEMAIL>" >"$WORK/out" 2>&1) ||
    fail "cpack"
package=$(echo made/*.deb)
[ -f "$package" ] || fail "no package"
dpkg-deb -f "$package" Depends >depends
for library in libc6 libcurl4 libmicrohttpd12 libsnappy1v5 liblua5.4-0 libuv1; do assert_contains depends "$library"; done

step "lintian"
if command -v lintian >/dev/null; then
    lintian --allow-root --suppress-tags initial-upload-closes-no-bugs,unstripped-binary-or-object "$package" >out 2>err ||
        fail "lintian"
    assert_file_lines out 0
fi

step "unpacked, it runs"
dpkg-deb -x "$package" root || fail "unpack"
for file in share/man/man1/ipw-agent.1.gz share/man/man1/ipw-agent-run.1.gz share/doc/ipw-agent/copyright \
    share/doc/ipw-agent/changelog.gz share/bash-completion/completions/ipw-agent \
    share/zsh/site-functions/_ipw-agent share/fish/vendor_completions.d/ipw-agent.fish; do
    [ -s "root/usr/$file" ] || fail "$file is missing"
done
expect_exit 0 root/usr/bin/ipw-agent --version
check_out "libcurl "
end_test
