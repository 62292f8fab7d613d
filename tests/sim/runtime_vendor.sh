#!/bin/sh
# Programs made with the vendor's own headers and compiler run on the simulated runtime: plain C linked with -lcudart,
# and CUDA C++ by nvcc -cudart shared. Needs the CUDA toolkit; the second part needs a working nvcc as well.
set -u

n=0
cuda=${TEST_CUDA_HOME-}
here=$top_srcdir/tests/sim/vendor

# The program's facts become ours, renumbered.
pass_on() { # pass_on NAME FILE STATUS
    while IFS= read -r line; do
        case $line in
        'ok '* | 'not ok '*)
            n=$((n + 1))
            echo "${line%%ok *}ok $n - $1: ${line#* - }"
            ;;
        1..*) ;;
        *) echo "# $line" ;;
        esac
    done <"$2"
    n=$((n + 1))
    if [ "$3" -eq 0 ]; then echo "ok $n - $1: ends well"; else echo "not ok $n - $1: ends with $3"; fi
}

skip() { # skip NAME REASON
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

run() { # run NAME PROGRAM
    LD_LIBRARY_PATH=$TEST_SIM "$2" >"$TEST_TMP/out" 2>&1
    pass_on "$1" "$TEST_TMP/out" $?
}

build() { # build NAME COMMAND...
    name=$1
    shift
    n=$((n + 1))
    if "$@" >"$TEST_TMP/log" 2>&1; then
        echo "ok $n - $name: compiles"
        return 0
    fi
    sed 's/^/# /' "$TEST_TMP/log"
    echo "not ok $n - $name: compiles"
    return 1
}

if [ -z "$cuda" ]; then
    echo "1..0 # SKIP no CUDA toolkit"
    exit 0
fi
if [ -n "$TEST_SANITIZE" ]; then
    echo "1..0 # SKIP a sanitizer's library cannot be loaded into programs built without"
    exit 0
fi

build plain $TEST_CC -I "$cuda/include" -o "$TEST_TMP/plain" "$here/plain.c" -L "$cuda/lib64" -lcudart &&
    run plain "$TEST_TMP/plain"

if [ ! -x "$cuda/bin/nvcc" ]; then
    skip kernel "no nvcc"
elif ! "$cuda/bin/nvcc" --version >/dev/null 2>&1; then
    skip kernel "nvcc does not run"
else
    build kernel "$cuda/bin/nvcc" -cudart shared -o "$TEST_TMP/kernel" "$here/kernel.cu" &&
        run kernel "$TEST_TMP/kernel"
fi
echo "1..$n"
