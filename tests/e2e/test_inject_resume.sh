# P-7, D-4, D-14: as test_inject_run.sh, of a run that was killed in the middle and goes on (stacked faults).
# No sanitizer: e2e.inject_run breaks the same calls; unit.run.rebuild and e2e.resume run the C of resuming.
STAGE=resume
. "$(dirname "$0")/test_inject_run.sh"
