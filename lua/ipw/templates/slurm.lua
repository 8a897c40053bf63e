--- ipw.templates.slurm: the script of `ipw-agent submit slurm`; {word} is replaced (ipw.cli.submit).
return [=[
#!/bin/sh
# {count} shards of one run as a Slurm array, and their merge.  Edit it, then hand it in:
#
#   sh {file}
#
# A job that Slurm starts again (after a preemption, a lost node, `scontrol requeue`) continues its
# shard: finished queries stay.  To run the shards 2 and 5 again: sbatch --array=2,5 {file}
#
#SBATCH --job-name={job}
#SBATCH --array=0-{last}{limit}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --chdir={folder}
#SBATCH --output={arraylog}
{sbatch}
# What a job may need.  Shards on one host must read the same sensors (the merge counts a shared device
# once), or each only its own GPU (run --telemetry nvml).
##SBATCH --time=04:00:00
##SBATCH --cpus-per-task=2
##SBATCH --gres=gpu:1
##SBATCH --partition=long

# Outside of the array: hand in the array, and the merge for when all its jobs have succeeded.
if [ -z "${SLURM_ARRAY_TASK_ID-}" ]; then
    mkdir -p {shards} || exit
    array=$(sbatch --parsable "$0") || exit
    merge=$(sbatch --parsable --dependency=afterok:"${array%%;*}" --kill-on-invalid-dep=yes \
        --job-name={job}-merge --chdir={shellfolder} --output={mergelog} \
        --wrap={merge}) || exit
    echo "array job ${array%%;*}, merge job ${merge%%;*}"
    exit
fi

# In the array: one shard.  --resume continues it, or begins it.
exec {run} \
    --output {output} --resume --shard "$SLURM_ARRAY_TASK_ID/{count}"
]=]
