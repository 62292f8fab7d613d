#!/bin/sh
# Every CPython that is found here (interpreters.py) tells of each frame of its own stack what is read of its memory: function, file
# and line, and where it belongs between the native frames (own_frames.py); and reading goes well while it ends, forks and is
# interrupted (own_ends.py). TEST_PYTHON_STACKS is how many stacks each compares, 1,000,000 for the whole, and TEST_PYTHON_SIGNALS
# how many signals interrupt. With TEST_MACHINE the interpreters of another machine run under qemu, and compare stacks alone: TEST_PROBE
# is the probe for it. TEST_PRELOAD is preloaded before the probe: the runtime of the sanitizer that it was built with.
. "$TEST_HELPERS/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
probe=${TEST_PROBE:-$top_builddir/tests/python/probe.so}
stacks=${TEST_PYTHON_STACKS:-400}
tab=$(printf '\t')

[ -z "${TEST_SANITIZE-}" ] || skip_all "an interpreter does not load a library with a sanitizer"
# Modules that were compiled once are not compiled in each run.
unset PYTHONDONTWRITEBYTECODE

stacks_of() { # VERSION PYTHON...
    version=$1
    shift
    out=$("$@" "$here/own_frames.py" "$probe" "$stacks" 1 2>&1)
    status=$?
    check "$version: $(printf '%s\n' "$out" | sed -n 's/^version [^,]*, //p')" "$status"
    [ "$status" -eq 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
}

ends_of() { # VERSION PYTHON...
    version=$1
    shift
    failed=
    for way in daemons at_exit dying forks signals interrupts interpreters remade off; do
        out=$("$@" "$here/own_ends.py" "$probe" "$way" 2>&1) || {
            failed="$failed $way"
            printf '%s\n' "$out" | sed 's/^/# /'
        }
    done
    [ -z "$failed" ]
    check "$version: goes on while it ends, forks and is interrupted$failed" $?
}

# Where it is a library, too.
lives_of() { # VERSION PYTHON...
    version=$1
    shift
    library=$("$@" -c 'import sysconfig as s; print(s.get_config_var("LIBDIR") + "/" + s.get_config_var("LDLIBRARY"))' 2>/dev/null)
    case $library in
    *.so*) [ -f "$library" ] || return 0 ;;
    *) return 0 ;;
    esac
    home=$("$@" -c 'import sys; print(sys.prefix)')
    (env PYTHONHOME="$home" "$top_builddir/tests/python/lives" "$library") >/dev/null 2>&1 || {
        skip "$version: several lives" "by itself it does not bear them"
        return
    }
    out=$(env PYTHONHOME="$home" LD_PRELOAD="${TEST_PRELOAD:+$TEST_PRELOAD:}$probe" "$top_builddir/tests/python/lives" "$library" "$probe" 2>&1)
    status=$?
    [ "$version" = 3.9 ] || [ "$version" = 3.10 ] || [ "$version" = 3.11 ] || case " $out" in *" 0 "*) status=1 ;; esac
    check "$version: is initialised and finalised several times, and tells each time what it is" "$status"
    [ "$status" -eq 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
}

while IFS=$tab read -r version command; do
    if [ -z "$command" ]; then
        skip "Python $version" "Python $version is not here${TEST_MACHINE:+ for $TEST_MACHINE}"
        continue
    fi
    old_ifs=$IFS
    IFS=$tab
    # shellcheck disable=SC2086
    set -- $command
    IFS=$old_ifs
    stacks_of "$version" "$@" </dev/null
    [ -n "${TEST_MACHINE-}" ] || {
        ends_of "$version" "$@" </dev/null
        lives_of "$version" "$@" </dev/null
    }
done <<LIST
$(python3 "$here/interpreters.py" ${TEST_PRELOAD:+"$TEST_PRELOAD"} "$probe")
LIST
plan_said
