# tests/merge: memshim merge, of ranks that are made up, and of real ones
dist_check_SCRIPTS += tests/merge/merge.py tests/merge/node.bats tests/merge/mpi.py tests/merge/ranks.py tests/merge/at_oom.py
EXTRA_DIST += tests/merge/made.py tests/merge/grouping.py tests/merge/quoted.py tests/merge/openmpi.py tests/merge/mpi_rank.c tests/merge/many.py scripts/test-merge
if BUILD_MPI
check_PROGRAMS += tests/merge/mpi_rank
tests_merge_mpi_rank_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
tests_merge_mpi_rank_CFLAGS = $(AM_CFLAGS) -g -O1
tests_merge_mpi_rank_LDADD = libcudart.so.13 $(MPI_LIBS)
endif
