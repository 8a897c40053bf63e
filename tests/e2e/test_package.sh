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

step "the source tarball has every file of the repository, and needs no network"
if git -C "$IPW_SOURCE_DIR" ls-files -z >tracked.z 2>err; then
    (cd "$IPW_BINARY_DIR" && cpack --config CPackSourceConfig.cmake -G TGZ -B "$WORK/source" >"$WORK/out" 2>&1) || fail "cpack"
    tar tzf source/*.tar.gz | sed -n 's,^[^/]*/\(.*[^/]\)$,\1,p' | LC_ALL=C sort >packed
    tr '\0' '\n' <tracked.z | LC_ALL=C sort >tracked
    # A file that was removed here and not yet in git is not missing.
    LC_ALL=C comm -23 tracked packed | while read -r file; do [ ! -e "$IPW_SOURCE_DIR/$file" ] || echo "$file"; done >lacking
    assert_eq "$(cat lacking)" "" "(missing in the tarball)"
    grep -rnE 'FetchContent|ExternalProject|file\(DOWNLOAD' "$IPW_SOURCE_DIR/CMakeLists.txt" "$IPW_SOURCE_DIR/cmake" >found &&
        fail "the build downloads something: $(cat found)"
else
    echo "NOT CHECKED against the repository: no git checkout"
fi

step "unpacked, it runs"
dpkg-deb -x "$package" root || fail "unpack"
for file in share/ipw-agent/library/ipw/tools.lua share/man/man1/ipw-agent.1.gz share/man/man1/ipw-agent-run.1.gz share/doc/ipw-agent/copyright \
    share/doc/ipw-agent/changelog.gz share/bash-completion/completions/ipw-agent \
    share/zsh/site-functions/_ipw-agent share/fish/vendor_completions.d/ipw-agent.fish; do
    [ -s "root/usr/$file" ] || fail "$file is missing"
done
expect_exit 0 root/usr/bin/ipw-agent --version
check_out "libcurl "
end_test
