# What opens Lua states needs the embedded files; the tests of it speak to Lua themselves.
file(GLOB script_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.c)
foreach(source ${script_tests})
  get_filename_component(name ${source} NAME_WE)
  target_sources(script_${name} PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
endforeach()
# Every n-th allocation fails: the linker puts the test's function in the place of the arena's.
target_link_options(script_test_torture PRIVATE -Wl,--wrap=ipw_arena_resize)
# Web requests go to the scripted server of the tests of io/.
target_sources(script_test_lib_http PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/io/server.c)
