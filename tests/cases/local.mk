# tests/cases: small programs shaped after public reports or found in use, and what each must print (cases.py)
check_PROGRAMS += tests/cases/asked tests/cases/kept tests/cases/after_free tests/cases/neighbour tests/cases/many
tests_cases_asked_SOURCES = tests/cases/asked.c tests/cases/case.h tests/program.h
tests_cases_asked_LDADD = libcudart.so.13 libcuda.so.1 -ldl
tests_cases_kept_SOURCES = tests/cases/kept.c tests/cases/case.h tests/program.h
tests_cases_kept_LDADD = libcudart.so.13 libcuda.so.1 -ldl
tests_cases_neighbour_SOURCES = tests/cases/neighbour.c tests/cases/case.h tests/program.h
tests_cases_neighbour_LDADD = libcudart.so.13 -ldl
tests_cases_many_SOURCES = tests/cases/many.c tests/cases/case.h tests/program.h
tests_cases_many_LDADD = libcudart.so.13 -ldl
tests_cases_after_free_SOURCES = tests/cases/after_free.c tests/cases/case.h tests/program.h
tests_cases_after_free_LDADD = libcudart.so.13 libcuda.so.1 -ldl

check_PROGRAMS += tests/cases/graph_owed
tests_cases_graph_owed_SOURCES = tests/cases/graph_owed.c tests/cases/case.h tests/program.h
tests_cases_graph_owed_CFLAGS = $(AM_CFLAGS) -g
tests_cases_graph_owed_LDADD = libcudart.so.13 libcuda.so.1 -ldl

check_PROGRAMS += tests/cases/opened
tests_cases_opened_SOURCES = tests/cases/opened.c tests/cases/case.h tests/program.h
tests_cases_opened_CFLAGS = $(AM_CFLAGS) -g
tests_cases_opened_LDADD = libcudart.so.13 libcuda.so.1 -ldl

check_PROGRAMS += tests/cases/followed
tests_cases_followed_SOURCES = tests/cases/followed.c tests/cases/case.h tests/program.h
tests_cases_followed_LDADD = libcudart.so.13 libcuda.so.1 -ldl

check_PROGRAMS += tests/cases/reset_free
tests_cases_reset_free_SOURCES = tests/cases/reset_free.c tests/cases/case.h tests/program.h
tests_cases_reset_free_LDADD = libcudart.so.13 libcuda.so.1 -ldl

dist_check_SCRIPTS += tests/cases/cases.py
TESTS += tests/cases/cases.py

# What the command says of such programs.
if BUILD_CLI
check_PROGRAMS += tests/cases/wanting
tests_cases_wanting_SOURCES = tests/cases/wanting.c tests/cases/case.h tests/program.h
tests_cases_wanting_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cases_wanting_LDADD = libcudart.so.13 libcuda.so.1 -ldl

check_PROGRAMS += tests/cases/helper
tests_cases_helper_SOURCES = tests/cases/helper.c tests/cases/case.h tests/program.h
tests_cases_helper_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cases_helper_LDADD = libcudart.so.13 libcuda.so.1 -ldl

dist_check_SCRIPTS += tests/cases/told.py
TESTS += tests/cases/told.py
endif
check_PROGRAMS += tests/cases/limited
tests_cases_limited_SOURCES = tests/cases/limited.c tests/cases/case.h tests/program.h
tests_cases_limited_LDADD = libcudart.so.13 libcuda.so.1 -ldl

check_PROGRAMS += tests/cases/loaded tests/cases/audit.so
tests_cases_loaded_SOURCES = tests/cases/loaded.c tests/cases/case.h tests/program.h
tests_cases_loaded_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_cases_loaded_LDADD = libcudart.so.13 libcuda.so.1 -ldl
tests_cases_audit_so_SOURCES = tests/cases/audit.c
tests_cases_audit_so_CFLAGS = $(AM_CFLAGS) -fPIC
tests_cases_audit_so_LDFLAGS = -shared

check_PROGRAMS += tests/cases/crossed
tests_cases_crossed_SOURCES = tests/cases/crossed.c tests/cases/case.h tests/program.h
tests_cases_crossed_LDADD = libcudart.so.13 libcuda.so.1 -ldl

if BUILD_CLI
check_PROGRAMS += tests/cases/policy
tests_cases_policy_SOURCES = tests/cases/policy.c tests/cases/case.h tests/program.h
tests_cases_policy_CFLAGS = $(AM_CFLAGS) -g -O1
tests_cases_policy_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_cases_policy_LDADD = libcudart.so.13 libcuda.so.1 -ldl
endif
