# jansson is the oracle that the reader is compared with; the program itself never links it.
find_library(JANSSON_LIBRARY jansson REQUIRED)
target_link_libraries(test_json PRIVATE ${JANSSON_LIBRARY})

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
