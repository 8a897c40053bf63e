#!/bin/sh
# Stands for the program under test where no sandbox can be made (a container without user namespaces): the
# programs of tools start without one.  IPW_CONFINED is the program itself.
case "${1-} $*" in
run\ * | resume* | score* | tool* | test* | repl\ * | replay*"--mode tools"*) exec "$IPW_CONFINED" "$@" --unsafe-tools ;;
esac
exec "$IPW_CONFINED" "$@"
