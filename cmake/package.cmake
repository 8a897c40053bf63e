# `cpack -G DEB` makes a Debian package of what `cmake --install` installs; `cpack --config
# CPackSourceConfig.cmake -G TGZ` a tarball that builds offline.  Both run in the build folder.
set(CPACK_PACKAGE_NAME ipw-agent)
set(CPACK_PACKAGE_VENDOR "The ipw-agent authors")
# Who makes the package, in the variables that Debian's own tools read.
set(CPACK_PACKAGE_CONTACT "The ipw-agent authors <ipw-agent@localhost>")
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "measure what an agent's answers cost in joules")
set(CPACK_PACKAGE_DESCRIPTION
"ipw-agent runs agents written in Lua over a dataset against OpenAI-compatible
model servers, reads the machine's energy sensors meanwhile, and says for each
query and each turn what it cost in tokens, time and energy. Saved runs can be
replayed, compared and exported.")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS ca-certificates)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS bubblewrap)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "librsvg2-bin, python3")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_debian.cmake)

set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME ipw-agent-${PROJECT_VERSION})
set(CPACK_SOURCE_IGNORE_FILES "/build/;/\\\\.git/;/\\\\.git$;/runs/;\\\\.swp$")
include(CPack)
