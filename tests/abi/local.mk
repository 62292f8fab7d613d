# tests/abi: our declarations against the vendor's headers; see docs/internals/testing.md
dist_check_SCRIPTS += tests/abi/layouts.py tests/abi/prototypes.py tests/abi/memory_functions.py tests/abi/hip.py
EXTRA_DIST += tests/abi/vendor.py
