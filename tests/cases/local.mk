# tests/cases: small programs shaped after public reports or found in use, and what each must print (cases.py)
check_PROGRAMS += tests/cases/kept
tests_cases_kept_SOURCES = tests/cases/kept.c tests/cases/case.h tests/program.h
tests_cases_kept_LDADD = libcudart.so.13 libcuda.so.1 -ldl

dist_check_SCRIPTS += tests/cases/cases.py
TESTS += tests/cases/cases.py
