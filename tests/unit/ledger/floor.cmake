# The simulated device and its sensors.
file(GLOB simulated CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/sim/*.c)
target_sources(test_ledger PRIVATE ${simulated})
