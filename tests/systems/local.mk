# tests/systems: the systems that the table in docs/user/clients.md names, each with the calls that it makes; see docs/internals/testing.md
check_PROGRAMS += tests/systems/cudecomp
tests_systems_cudecomp_SOURCES = tests/systems/cudecomp.c tests/systems/rounds.c tests/systems/rounds.h
tests_systems_cudecomp_LDADD = libnccl.so.2 libcudart.so.13 -ldl
EXTRA_DIST += tests/systems/systems.py tests/systems/workarea.f90

dist_check_SCRIPTS += tests/systems/fortran.py tests/systems/table.py

check_PROGRAMS += tests/systems/tvm
tests_systems_tvm_LDADD = libnccl.so.2 libcudart.so.13 -ldl
dist_check_SCRIPTS += tests/systems/tvm.py
