#!/bin/sh
# Unmodified programs from PyPI on the simulated GPU, natively and under memshim: what they copy to the device comes back
# right, and the report names the extension module that allocated; memory resources of cuda-core, which are pools, print the same
# in each mode. They are installed into the build directory once.
set -u

n=0
here=$top_srcdir/tests/thirdparty
place=$top_builddir/tests/thirdparty
python=$place/venv/bin/python

check() { # check DESCRIPTION STATUS [LOG]
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $n - $1"
        return
    fi
    [ $# -lt 3 ] || tail -n 20 "$3" | sed 's/^/# /'
    echo "not ok $n - $1"
}

skip() { # skip DESCRIPTION REASON
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

install() {
    timeout 110 sh "$here/install.sh" "$place" >"$TEST_TMP/install" || {
        sed 1d "$TEST_TMP/install"
        skip_all "$(head -n 1 "$TEST_TMP/install")"
    }
}

# cumm's wheel carries the runtime under a name of its own, found by DT_RPATH: the simulated one is preloaded under it.
cumm_runtime() {
    "$python" - <<'END'
import glob, os, site
found = glob.glob(os.path.join(site.getsitepackages()[0], "cumm*.libs", "libcudart*"))
print(os.path.basename(found[0]) if found else "")
END
}

# The program on the simulator; PRELOAD is what it needs there.
natively() { # natively PROGRAM
    LD_LIBRARY_PATH=$TEST_SIM:$TEST_TMP LD_PRELOAD=$preload "$python" "$here/$1" >"$TEST_TMP/out" 2>"$TEST_TMP/err"
}

followed() { # followed PROGRAM
    LD_LIBRARY_PATH=$TEST_TMP LD_PRELOAD=$preload "$TEST_BIN" run --sim -f -o "$TEST_TMP/report.json" -- \
        "$python" "$here/$1" >"$TEST_TMP/out" 2>"$TEST_TMP/err"
}

# Whether a site of at least BYTES has a frame in a module whose path holds MODULE.
names_module() { # names_module MODULE BYTES
    python3 "$TEST_HELPERS/report.py" "$TEST_TMP/report.json" "any(
        s['total_bytes'] >= $2 and any(
            'module' in f and '$1' in next(m['path'] for m in r['modules'] if m['id'] == f['module'])
            for f in frames(r, s['stack']))
        for s in r['sites'])" >"$TEST_TMP/answer" 2>"$TEST_TMP/err"
    grep -qx True "$TEST_TMP/answer"
}

try() { # try NAME MODULE
    natively "$1_copy.py"
    check "$1 copies there and back" $? "$TEST_TMP/err"
    bytes=$(cat "$TEST_TMP/out")
    if [ ! -x "$TEST_BIN" ] || [ ! -e "$TEST_LIB" ]; then
        skip "$1 under memshim" "the memshim command is not built"
        return
    fi
    if [ -n "$TEST_SANITIZE" ]; then
        skip "$1 under memshim" "a sanitizer's library cannot be preloaded into python3"
        return
    fi
    followed "$1_copy.py"
    check "$1 copies there and back under memshim" $? "$TEST_TMP/err"
    test "$bytes" = "$(cat "$TEST_TMP/out")"
    check "$1 prints the same under memshim" $? "$TEST_TMP/err"
    names_module "$2" "$bytes"
    check "the report names $2, which allocated" $? "$TEST_TMP/err"
}

# A program that prints many lines, and starts processes: what it prints natively is what it prints in every mode, and every report is valid.
alike() { # alike PROGRAM
    if [ ! -x "$TEST_BIN" ] || [ ! -e "$TEST_LIB" ]; then
        skip "$1" "the memshim command is not built"
        return
    fi
    export MEMSIM_DEVICES=2
    natively "$1"
    check "$1 runs" $? "$TEST_TMP/err"
    mv "$TEST_TMP/out" "$TEST_TMP/native"
    for mode in MEMSHIM_MODE=pool MEMSHIM_MODE=track; do
        rm -rf "$TEST_TMP/reports"
        mkdir "$TEST_TMP/reports"
        env LD_LIBRARY_PATH="$TEST_SIM" LD_PRELOAD="$TEST_LIB" MEMSHIM_REPORT="$TEST_TMP/reports/%p.json" $mode "$python" "$here/$1" \
            >"$TEST_TMP/out" 2>"$TEST_TMP/err"
        check "$1 runs with $mode" $? "$TEST_TMP/err"
        diff "$TEST_TMP/native" "$TEST_TMP/out" >"$TEST_TMP/differ"
        check "$1 prints the same with $mode" $? "$TEST_TMP/differ"
        "$TEST_BIN" validate "$TEST_TMP/reports"/*.json >"$TEST_TMP/err" 2>&1
        check "its reports with $mode are valid" $? "$TEST_TMP/err"
    done
    unset MEMSIM_DEVICES
}

[ -z "$TEST_SANITIZE" ] || skip_all "a sanitizer's library cannot be loaded into python3"
install

runtime=$(cumm_runtime)
[ -z "$runtime" ] || ln -sf "$TEST_SIM/libcudart.so.12" "$TEST_TMP/$runtime"

preload=
try numba cuda/bindings
try bindings cuda/bindings
try tinygrad _ctypes
alike core_pools.py
preload=$runtime
try cumm cumm/core_cc
echo "1..$n"
