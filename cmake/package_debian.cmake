# What Debian's policy asks of a package beyond `cmake --install`: the copyright file by that name, a
# changelog in Debian's form, and the changelogs and manual pages compressed.  Run by cpack in the
# folder that it is about to pack.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
set(doc ${usr}/share/doc/ipw-agent)
set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH is obeyed
file(RENAME ${doc}/LICENSE ${doc}/copyright)
file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
file(WRITE ${doc}/changelog.Debian "ipw-agent (${version}) unstable; urgency=medium

  * changelog.gz says what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(GLOB pages ${usr}/share/man/man1/*.1)
execute_process(COMMAND gzip -9n ${doc}/changelog ${doc}/changelog.Debian ${pages} COMMAND_ERROR_IS_FATAL ANY)
