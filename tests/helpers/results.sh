# The results of tests: runs the harness over some of them, reads what automake's driver left, repeats what failed. Sourced by
# scripts/test and by the harness's own test, with `build` set to the build directory.
# shellcheck shell=sh
# shellcheck disable=SC2154

log_name() { # TEST: automake's logs are named without the extension
    echo "$1" | sed 's/\.\(sh\|bats\|py\)$//'
}

# The harness over the tests of $1, $2 at a time, with what make says in $3.log; of programs $check_programs are made, or all. Logs of an
# earlier run do not speak for this one.
run_tests() { # TESTS JOBS [LOG]
    for name in $1; do
        rm -f "$build/$(log_name "$name").trs"
    done
    make -C "$build" -sj"$2" check TESTS="$(echo "$1" | tr '\n' ' ')" \
        ${check_programs+"check_PROGRAMS=$check_programs"} >"$build/${3-check}.log" 2>&1 </dev/null
}

# The TAP results of one test, "TEST STATUS" a line, as automake's driver left them. A program that ends with 1 after a fact
# that did not hold is not another failure.
results_of() { # TEST
    base=$build/$(log_name "$1")
    if [ ! -f "$base.trs" ]; then
        echo "$1 ERROR"
        return
    fi
    exited=$(grep -c '^ERROR: .* - exited with status 1$' "$base.log")
    sed -n "s|^:test-result: |$1 |p" "$base.trs" |
        awk -v exited="$exited" '$2 == "FAIL" { failed = 1 } !(failed && exited && $2 == "ERROR" && !dropped++)'
}

failed_tests() { # RESULTS
    awk '$2 ~ /^(FAIL|XPASS|ERROR)$/ { print $1 }' "$1" | uniq
}

# Whether a test passes each of $2 times with nothing beside it. Its results of the last of these runs are in $3 then.
passes_alone() { # TEST TIMES RESULTS
    for _ in $(seq "$2"); do
        run_tests "$1" 1 check-alone
        results_of "$1" >"$3"
        [ -s "$3" ] && [ -z "$(failed_tests "$3")" ] || return 1
    done
}

# Runs what failed again, alone. Who passes each time has the new results in RESULTS, and its failure is shown: it is somebody's bug.
repeat_failed() { # RESULTS TIMES
    for name in $(failed_tests "$1"); do
        log=$build/$(log_name "$name").log
        [ -f "$log" ] || continue
        cp "$log" "$log.first"
        if passes_alone "$name" "$2" "$1.alone"; then
            echo "flaky: $name failed, and passed $2 times alone"
            sed -n '/^\(not ok\|# \|Bail out!\|ERROR:\)/p' "$log.first" | head -n 30
            awk -v name="$name" '$1 != name' "$1" >"$1.others"
            cat "$1.others" "$1.alone" >"$1"
        else
            cp "$log.first" "$log"
        fi
    done
}

count() { # FILE STATUS-REGEX
    awk -v status="^($2)\$" '$2 ~ status { n++ } END { print n + 0 }' "$1"
}
