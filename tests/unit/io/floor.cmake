target_link_libraries(test_io PRIVATE PkgConfig::UV)
# The scripted server that the HTTP tests talk to, and what they have in common.
target_sources(test_io PRIVATE ${CMAKE_CURRENT_LIST_DIR}/server.c ${CMAKE_CURRENT_LIST_DIR}/exchange.c)
