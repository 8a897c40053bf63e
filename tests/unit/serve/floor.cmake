# What runs scripts needs the embedded files.
foreach(target test_serve test_run run_test_failing_repair)
  if(TARGET ${target})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
  endif()
endforeach()
