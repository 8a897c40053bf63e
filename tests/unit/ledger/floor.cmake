# The simulated device and its sensors.
foreach(unit sim ledger ledger_accounts ledger_bounds)
  target_sources(ledger_test_${unit} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/sim/sim.c)
endforeach()
target_sources(ledger_test_truth PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/sim/sim.c
               ${CMAKE_CURRENT_SOURCE_DIR}/sim/crowd.c ${CMAKE_CURRENT_SOURCE_DIR}/sim/truth.c)
