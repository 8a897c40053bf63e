# What runs scripts needs the embedded files.
foreach(test serve_test_server serve_test_completion serve_test_recorded_write run_test_failing_repair
             run_test_rebuild)
  if(TARGET ${test})
    target_sources(${test} PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
  endif()
endforeach()
