# tests/startup: what Python reads at its start
dist_check_SCRIPTS += tests/startup/startup.py
EXTRA_DIST += tests/startup/pools.py tests/startup/stand_in/vendor.py tests/startup/stand_in/cupy/__init__.py \
	tests/startup/stand_in/cupy/cuda/__init__.py tests/startup/stand_in/cupy/cuda/memory_hook.py tests/startup/stand_in/rmm/__init__.py \
	tests/startup/stand_in/rmm/mr/__init__.py
