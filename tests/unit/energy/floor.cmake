# These load or start the stand-ins of tests/fake.
add_dependencies(energy_test_nvml nvidia-ml-stub nvidia-ml-incomplete)
add_dependencies(energy_test_nvml_choice nvidia-ml-stub)
add_dependencies(energy_test_source nvidia-ml-stub fake_powercap)
add_dependencies(energy_test_select nvidia-ml-stub)
# The pages of an exporter come through io/.
target_link_libraries(energy_test_prometheus PRIVATE ipw_io)
# What the sensors say, as the ledger takes it.
foreach(unit source overlap stream stream_lies)
  target_link_libraries(energy_test_${unit} PRIVATE ipw_ledger)
endforeach()
foreach(unit stream stream_lies)
  target_sources(energy_test_${unit} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/sim/sim.c)
endforeach()
