target_link_libraries(io_test_loop PRIVATE PkgConfig::UV)
# The scripted server that the HTTP tests talk to, and what they have in common.
foreach(target io_test_http io_test_http_call)
  if(TARGET ${target})
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/io/server.c
                                     ${CMAKE_CURRENT_SOURCE_DIR}/unit/io/exchange.c)
    target_link_libraries(${target} PRIVATE PkgConfig::UV)
  endif()
endforeach()
