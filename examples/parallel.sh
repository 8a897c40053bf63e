#!/bin/sh
# One run in four processes of GNU parallel, on this machine or on others.
#
# {} is the shard, counted from 0.  --resume continues a shard that was stopped, or begins it: so the
# same line continues the whole run after a Ctrl-C or a power cut.  --joblog with --resume-failed runs
# only those shards again that failed.
#
# On other machines that share this folder, add for example:  --sshlogin node1,node2 --workdir .
set -e
parallel --jobs 4 --joblog runs-big.log \
    ipw-agent run agents/react.lua --dataset gaia --output runs/big --quiet --resume --shard {}/4 \
    ::: 0 1 2 3

# The shards are one run now.  Joules of a GPU that they shared are counted once.
ipw-agent merge runs/big.shards
