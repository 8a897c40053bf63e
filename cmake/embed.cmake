# ipw_embed(OUT FILES...): writes OUT, a C file that defines ipw_embedded_files, the table declared
# in src/script/embedded.h: each file's repository path and its bytes.  Plain CMake, no other tool.
# The file is written by a custom command, so that an edited Lua file is embedded anew.
function(ipw_embed out)
  set(absolute)
  foreach(f ${ARGN})
    list(APPEND absolute ${CMAKE_SOURCE_DIR}/${f})
  endforeach()
  string(REPLACE ";" "\n" listing "${ARGN}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded.list CONTENT "${listing}\n" @ONLY)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${CMAKE_SOURCE_DIR}
            -DLIST=${CMAKE_BINARY_DIR}/embedded.list -P ${CMAKE_SOURCE_DIR}/cmake/embed_write.cmake
    DEPENDS ${absolute} ${CMAKE_BINARY_DIR}/embedded.list
            ${CMAKE_SOURCE_DIR}/cmake/embed_write.cmake
    COMMENT "Embedding lua/, agents/ and datasets/" VERBATIM)
endfunction()
