# jansson is the oracle that the reader is compared with; the program itself never links it.
find_library(JANSSON_LIBRARY jansson REQUIRED)
target_link_libraries(json_test_differential PRIVATE ${JANSSON_LIBRARY})
target_link_libraries(json_test_suite PRIVATE ${JANSSON_LIBRARY})

# The scanner has a second form for compilers without SSE2; the same tests run over it.
foreach(unit guard write)
  set(target json_test_${unit}_words)
  add_executable(${target} ${CMAKE_CURRENT_LIST_DIR}/test_${unit}.c
                 ${CMAKE_SOURCE_DIR}/src/json/guard.c ${CMAKE_SOURCE_DIR}/src/json/escape.c)
  target_compile_options(${target} PRIVATE -U__SSE2__)
  target_link_libraries(${target} PRIVATE ipw_json PkgConfig::CMOCKA)
  add_test(NAME unit.json.${unit}_words COMMAND ${target})
  set_tests_properties(unit.json.${unit}_words PROPERTIES LABELS unit TIMEOUT 600)
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
