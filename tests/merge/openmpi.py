"""mpirun on one machine, as Open MPI has it."""
import os
import subprocess

# More processes than processors, as root in a container, over nothing but this machine's memory: Open MPI's words, 4 and 5.
WORDS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
         "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def mpirun(processes, *words, before=()):
    """(status, standard output, the lines of ours on standard error)."""
    done = subprocess.run([*before, "mpirun", "-n", str(processes), *words], capture_output=True, text=True, timeout=250, check=False, env=dict(os.environ, **WORDS))
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line.startswith("memshim")] or ([done.stderr] if done.returncode else [])
