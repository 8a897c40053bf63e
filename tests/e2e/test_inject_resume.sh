# P-7, D-4, D-14: as test_inject_run.sh, of a run that was killed in the middle and goes on (stacked faults).
STAGE=resume
. "$(dirname "$0")/test_inject_run.sh"
