# The stand-ins of tests/fake are loaded or started.
add_dependencies(test_energy nvidia-ml-stub nvidia-ml-incomplete fake_powercap)
# The pages of an exporter come through io/ and are read by Lua; what the sensors say goes to the ledger.
target_link_libraries(test_energy PRIVATE ipw_script ipw_io ipw_ledger)
target_sources(test_energy PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/sim/sim.c)
target_sources(test_energy PRIVATE $<TARGET_OBJECTS:ipw_embedded>)
