# What runs scripts needs the embedded files.
foreach(test app_test_serve app_test_serve_reply app_test_serve_recorded_write app_test_failing_repair
             app_test_mend)
  if(TARGET ${test})
    target_sources(${test} PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
  endif()
endforeach()
