# summary.json is computed by a Lua file, which is embedded.
if(TARGET test_report)
  target_sources(test_report PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
endif()
