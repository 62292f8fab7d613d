# tests/limbo: frees that find more in limbo than may be there: they wait, and no longer than they should
check_PROGRAMS += tests/limbo/limbo
tests_limbo_limbo_LDADD = libcudart.so.13 libcuda.so.1

dist_check_SCRIPTS += tests/limbo/limbo.py
