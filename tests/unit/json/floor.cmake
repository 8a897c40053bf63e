# jansson is the oracle that the reader is compared with; the program itself never links it.
find_library(JANSSON_LIBRARY jansson REQUIRED)
target_link_libraries(test_json PRIVATE ${JANSSON_LIBRARY})

# The scanner has a second form for compilers without SSE2; the same tests run over it.
unit_program(test_json_words json ${CMAKE_CURRENT_LIST_DIR}/test_guard.c ${CMAKE_CURRENT_LIST_DIR}/test_write.c
             ${CMAKE_SOURCE_DIR}/src/json/guard.c ${CMAKE_SOURCE_DIR}/src/json/escape.c $<TARGET_OBJECTS:unit_main>)
target_compile_options(test_json_words PRIVATE -U__SSE2__)
foreach(unit guard write)
  unit_test(json.${unit}_words test_json_words ${unit})
endforeach()

# The calls on files fail one by one: the linker puts the test's functions in the place of the C library's.
set(failing_calls open close read pread write pwrite fstat fsync fdatasync ftruncate rename mkdir flock)
list(TRANSFORM failing_calls PREPEND -Wl,--wrap=)
foreach(target json_test_failing_files trace_test_failing_run run_test_failing_repair
               energy_test_failing_sensors)
  if(TARGET ${target})
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/failing.c)
    target_link_options(${target} PRIVATE ${failing_calls})
  endif()
endforeach()
