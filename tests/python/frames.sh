#!/bin/sh
# Every CPython that is found here tells of each frame of its own stack what is read of its memory: function, file and line
# (own_frames.py); and reading goes well while it ends, forks and is interrupted (own_ends.py). TEST_PYTHON_STACKS is how many
# stacks each compares, 1,000,000 for the whole. TEST_PYTHONS names the folder of interpreters that were unpacked beside the system
# (scripts/get-pythons), which run by their own loader.
. "$TEST_HELPERS/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
probe=$top_builddir/tests/python/probe.so
stacks=${TEST_PYTHON_STACKS:-400}
unpacked=${TEST_PYTHONS:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/memshim/pythons}

[ -z "${TEST_SANITIZE-}" ] || skip_all "an interpreter does not load a library with a sanitizer"

run() { # VERSION PYTHON...
    version=$1
    shift
    out=$("$@" "$here/own_frames.py" "$probe" "$stacks" 1 2>&1)
    status=$?
    check "$version: $(printf '%s\n' "$out" | sed -n 's/^version [^,]*, //p')" "$status"
    [ "$status" -eq 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
    failed=
    for way in daemons at_exit dying forks signals interpreters; do
        out=$(timeout 60 "$@" "$here/own_ends.py" "$probe" "$way" 2>&1) || {
            failed="$failed $way"
            printf '%s\n' "$out" | sed 's/^/# /'
        }
    done
    [ -z "$failed" ]
    check "$version: goes on while it ends, forks and is interrupted$failed" $?
}

for version in 3.9 3.10 3.11 3.12 3.13 3.14 3.15; do
    found=
    for python in "/usr/bin/python$version" "${HOME:-/root}"/.pyenv/versions/$version.*/bin/python$version; do
        "$python" -c 'import ctypes' 2>/dev/null || continue
        found=1
        run "$version" env LD_PRELOAD="$probe" "$python"
    done
    loader=$unpacked/$version/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
    if [ -x "$loader" ]; then
        found=1
        run "$version" env PYTHONHOME="$unpacked/$version/usr" "$loader" --preload "$probe" --library-path "${loader%/*}" \
            "$unpacked/$version/usr/bin/python$version"
    fi
    [ -n "$found" ] || skip "Python $version" "Python $version is not installed"
done
plan_said
