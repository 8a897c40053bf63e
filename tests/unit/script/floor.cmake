# What opens Lua states needs the embedded files.
foreach(target test_script script_test_rules script_test_torture)
  if(TARGET ${target})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
  endif()
endforeach()
# Every n-th allocation fails: the linker puts the test's function in the place of the arena's.
target_link_options(script_test_torture PRIVATE -Wl,--wrap=ipw_arena_resize)
# Web requests go to the scripted server of the tests of io/.
target_sources(test_script PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/unit/io/server.c)
