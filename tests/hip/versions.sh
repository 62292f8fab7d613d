# The three simulated libraries: what they export, and that a program gets the one that it was linked with.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"
. "$top_srcdir/tests/hip/real.sh"

plan 13
programs=$top_builddir/tests/hip

# exports LIBRARY: its functions with their version nodes.
exports() { nm -D --defined-only "$1" | sed -n 's/^[0-9a-f]* [TW] \(.*@@hip_.*\)$/\1/p' | grep -v '^memsim_' | LC_ALL=C sort; }
for version in 5 6 7; do
    exports "$TEST_SIM/libamdhip64.so.$version" >"$TEST_TMP/exports.$version"
    test "$(nm -D --defined-only "$TEST_SIM/libamdhip64.so.$version" | grep -vc '@@hip_\| A ')" = 0
    check "libamdhip64.so.$version exports nothing without a version node" $?
done
for name in hipMalloc@@hip_4.2 hipMallocAsync@@hip_5.1 hipGetDeviceProperties@@hip_4.2; do
    test "$(grep -lx "$name" "$TEST_TMP"/exports.[567] | wc -l)" = 3
    check "$name is in every version" $?
done
test "$(cat "$TEST_TMP"/exports.[567] | grep -c hipGetDevicePropertiesR0600@@hip_6.0)" = 2
check "the device's properties of 6.0 are not in .5" $?
if [ -n "$hip_real" ]; then
    exports "$hip_real/libamdhip64.so.5" >"$TEST_TMP/exports.real"
    same "libamdhip64.so.5 exports what the real one does, at the same nodes" "$TEST_TMP/exports.5" "$TEST_TMP/exports.real"
else
    skip "libamdhip64.so.5 exports what the real one does, at the same nodes" "$hip_missing"
fi

for version in 5 6 7; do
    "$TEST_BIN" run --sim -f -o "$report" -- "$programs/conform_$version" >"$TEST_TMP/said" 2>&1
    test $? = 0 && ! grep -q '^not ok' "$TEST_TMP/said"
    check "memshim run --sim gives a program version $version" $?
    grep '^not ok' "$TEST_TMP/said" | sed 's/^/# /'
done
if [ -n "$TEST_SANITIZE" ]; then
    skip "what a program opens by itself is found, and nothing of HIP is preloaded for it" "a plain interpreter cannot load a sanitizer's build"
else
    "$TEST_BIN" run --sim -f -o "$report" -- /usr/bin/env python3 -c '
import ctypes, os
preloaded = os.environ["LD_PRELOAD"]
assert "libamdhip64" not in preloaded, preloaded
hip = ctypes.CDLL("libamdhip64.so.6")
version = ctypes.c_int()
assert hip.hipRuntimeGetVersion(ctypes.byref(version)) == 0 and version.value // 10000000 == 6' >"$TEST_TMP/said" 2>&1
    check "what a program opens by itself is found, and nothing of HIP is preloaded for it" $?
    sed 's/^/# /' "$TEST_TMP/said"
fi
test "$(MEMSIM_FAIL=hipFree@2=719 "$programs/conform_6" | grep -c '^not ok')" -gt 0
check "MEMSIM_FAIL reaches HIP's functions" $?
