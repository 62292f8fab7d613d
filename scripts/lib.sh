# What the scripts share: where things are, how memshim is configured and built. Sourced with `top` set to the source
# tree; each function returns non-zero on failure and has said why.
# shellcheck shell=sh

# The build directory. CONFIGURE_ARGS, CC and CFLAGS of the environment reach configure.
build=${BUILD_DIR:-$top/build}

say() {
    printf '== %s\n' "$*"
}

# run_logged NAME COMMAND...: the command with its output in $build/NAME.log, shown only if it fails.
run_logged() {
    logged=$build/$1.log
    shift
    if ! "$@" >"$logged" 2>&1 </dev/null; then
        tail -n 60 "$logged" >&2
        echo "failed: $* (all of it in $logged)" >&2
        return 1
    fi
}

# Tests start `python3` some thousand times. A version manager's is a script that looks for the interpreter, and
# what is installed beside others may be loaded at each start: so it is the system's, if that has what the tests
# import, and else what the name stands for; if that is a virtual environment's, which is known by its path, the
# name stays as it is.
find_python() {
    for python in /usr/bin/python3 python3; do
        python=$("$python" -c 'import sys, jsonschema
print(sys.executable if sys.prefix == sys.base_prefix else "")' 2>/dev/null </dev/null) || continue
        [ -x "$python" ] || continue
        mkdir -p "$build/path" && ln -sfn "$python" "$build/path/python3" || return 0
        PATH=$build/path:$PATH
        export PATH
        return 0
    done
}

# Makes configure unless it is there and whole. A change of the autotools' sources later on is make's affair.
ensure_bootstrapped() {
    if [ ! -x "$top/configure" ] || [ ! -f "$top/build-aux/tap-driver.sh" ] || [ ! -f "$top/Makefile.in" ]; then
        say "bootstrap"
        run_logged bootstrap "$top/bootstrap" || return 1
    fi
}

# Configures the build directory unless it was configured from this tree with these words.
ensure_configured() {
    mkdir -p "$build" || return 1
    build=$(cd "$build" && pwd)
    ensure_bootstrapped || return 1
    wanted="$top|${CONFIGURE_ARGS-}|${CC-}|${CFLAGS-}"
    if [ -f "$build/Makefile" ] && [ "$(cat "$build/.configured" 2>/dev/null)" = "$wanted" ]; then
        return 0
    fi
    say "configure in $build"
    rm -f "$build/.configured"
    # shellcheck disable=SC2086
    (cd "$build" && run_logged configure "$top/configure" -q ${CONFIGURE_ARGS-}) || return 1
    printf '%s\n' "$wanted" >"$build/.configured"
}

# make_all TARGET...: builds on every core; compiler warnings are shown even when nothing failed.
make_all() {
    run_logged make make -C "$build" -sj"$(nproc)" "$@" || return 1
    grep -i 'warning:' "$build/make.log" || true
}
