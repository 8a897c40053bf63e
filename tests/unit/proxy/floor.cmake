# What runs scripts needs the embedded files.
target_sources(test_proxy PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
