# real.sh - where the real HIP runtime and its headers are, for the tests that hold ours against them. Sourced, never run.
# shellcheck shell=sh
# shellcheck disable=SC2034
# hip_real: the directory of libamdhip64.so.5, hip_headers: that of hip/hip_runtime_api.h; empty where there is none.
# scripts/fetch hip unpacks Debian's packages into a cache; what is installed is as good.
hip_cache=$TEST_CACHE/hip-5.2.3/usr
hip_missing="Debian's libamdhip64-5 is neither installed nor in $hip_cache (scripts/fetch hip)"
hip_real=
hip_headers=
for hip_prefix in "$hip_cache" /usr /opt/rocm; do
    for hip_directory in lib/x86_64-linux-gnu lib; do
        [ -z "$hip_real" ] && [ -e "$hip_prefix/$hip_directory/libamdhip64.so.5" ] && hip_real=$hip_prefix/$hip_directory
    done
    [ -z "$hip_headers" ] && [ -e "$hip_prefix/include/hip/hip_runtime_api.h" ] && hip_headers=$hip_prefix/include
done
