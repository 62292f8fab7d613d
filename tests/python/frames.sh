#!/bin/sh
# Every CPython that is found here tells of each frame of its own stack what is read of its memory: function, file and line
# (own_frames.py). MEMSHIM_PYTHON_STACKS is how many stacks each compares, 1,000,000 for the whole; MEMSHIM_PYTHONS names more
# interpreters, in words: a program, or a directory into which Debian's packages were unpacked, run by their own loader.
. "$TEST_HELPERS/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
probe=$top_builddir/tests/python/probe.so
stacks=${MEMSHIM_PYTHON_STACKS:-400}

[ -z "${TEST_SANITIZE-}" ] || skip_all "an interpreter does not load a library with a sanitizer"

run() { # VERSION PYTHON...
    version=$1
    shift
    out=$("$@" "$here/own_frames.py" "$probe" "$stacks" 1 2>&1)
    status=$?
    check "$version: $(printf '%s\n' "$out" | sed -n 's/^version [^,]*, //p')" "$status"
    [ "$status" -eq 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
}

unpacked() { # VERSION DIRECTORY
    for loader in "$2"/usr/lib/*/ld-linux-*.so.*; do
        run "$1" env PYTHONHOME="$2/usr" "$loader" --preload "$probe" --library-path "${loader%/*}" "$2/usr/bin/python$1"
    done
}

for version in 3.9 3.10 3.11 3.12 3.13 3.14 3.15; do
    found=
    for python in "/usr/bin/python$version" "${HOME:-/root}"/.pyenv/versions/$version.*/bin/python$version; do
        "$python" -c 'import ctypes' 2>/dev/null || continue
        found=1
        run "$version" env LD_PRELOAD="$probe" "$python"
    done
    for directory in ${MEMSHIM_PYTHONS-}; do
        [ -x "$directory/usr/bin/python$version" ] || continue
        found=1
        unpacked "$version" "$directory"
    done
    [ -n "$found" ] || skip "Python $version" "Python $version is not installed"
done
plan_said
