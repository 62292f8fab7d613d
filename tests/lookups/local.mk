# tests/lookups: the vendor's libraries look the driver up; see docs/internals/testing.md
dist_check_SCRIPTS += tests/lookups/lookups.sh
EXTRA_DIST += tests/lookups/gen_stub.py tests/lookups/logger.c tests/lookups/app.cu tests/lookups/nccl_app.c
