# tests/thirdparty: other allocators, unmodified, out of the packages that scripts/bench --peers installs; skipped without
dist_check_SCRIPTS += tests/thirdparty/peers.py
EXTRA_DIST += tests/thirdparty/torch_async.cc tests/thirdparty/rmm_async.cc
