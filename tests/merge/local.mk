# tests/merge: memshim merge, of ranks that are made up
dist_check_SCRIPTS += tests/merge/merge.py tests/merge/node.bats tests/merge/mpi.py
EXTRA_DIST += tests/merge/made.py scripts/merge-many
TESTS += tests/merge/merge.py tests/merge/node.bats tests/merge/mpi.py
