# P-7, D-4, D-14: as test_inject_run.sh (with IPW_LONG=1 too), of a run that was killed in the middle and goes on (stacked faults).
# Long: it takes a minute; unit.run.failing_repair fails the same calls, and e2e.inject_run those of a run.
STAGE=resume
. "$(dirname "$0")/test_inject_run.sh"
