# tests/thirdparty: programs from PyPI, unmodified; skipped where PyPI cannot be reached
dist_check_SCRIPTS += tests/thirdparty/packages.sh tests/thirdparty/install.sh tests/thirdparty/peers.py
EXTRA_DIST += tests/thirdparty/requirements.txt tests/thirdparty/numba_copy.py tests/thirdparty/cumm_copy.py \
	tests/thirdparty/bindings_copy.py tests/thirdparty/core_pools.py tests/thirdparty/tinygrad_copy.py \
	tests/thirdparty/torch_async.cc tests/thirdparty/rmm_async.cc
TESTS += tests/thirdparty/packages.sh tests/thirdparty/peers.py
clean-local: clean-thirdparty
clean-thirdparty:
	rm -rf tests/thirdparty/venv
.PHONY: clean-thirdparty
