# These load or start the stand-ins of tests/fake.
add_dependencies(energy_test_nvml nvidia-ml-stub nvidia-ml-incomplete)
add_dependencies(energy_test_nvml_choice nvidia-ml-stub)
add_dependencies(energy_test_source nvidia-ml-stub fake_powercap)
add_dependencies(energy_test_select nvidia-ml-stub)
# The simulated device and its sensors.
foreach(unit sim ledger ledger_accounts ledger_bounds ledger_gauge)
  target_sources(energy_test_${unit} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/sim/sim.c)
endforeach()
target_sources(energy_test_truth PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/sim/sim.c
               ${CMAKE_CURRENT_SOURCE_DIR}/sim/crowd.c ${CMAKE_CURRENT_SOURCE_DIR}/sim/truth.c)
