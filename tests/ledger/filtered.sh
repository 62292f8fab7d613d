#!/bin/bash
# A host under a filter of system calls that ends a process for getppid is not harmed, and its report knows the parent.
set -u
filtered=$top_builddir/tests/ledger/filtered
echo 1..3
if [ -n "$TEST_SANITIZE" ]; then
    for i in 1 2 3; do echo "ok $i # SKIP a sanitizer's library cannot be preloaded into a plain program"; done
    exit
fi
"$filtered" true
if [ $? -eq 77 ]; then
    for i in 1 2 3; do echo "ok $i # SKIP ${TEST_EMULATED:-the kernel} takes no filter of system calls"; done
    exit
fi
LD_LIBRARY_PATH=$TEST_SIM LD_PRELOAD=$TEST_LIB MEMSHIM_REPORT=$TEST_TMP/report.json \
    "$filtered" "$top_builddir/tests/ledger/exiting" 1 1000
status=$?
[ $status -eq 3 ] && echo "ok 1 - it ends as it does by itself" || echo "not ok 1 - it ends with $status"
python3 - "$TEST_TMP/report.json" $$ <<'END' && echo "ok 2 - its parent is in the report" || echo "not ok 2 - its parent is in the report"
import json, sys
sys.exit(json.load(open(sys.argv[1]))["run"]["ppid"] != int(sys.argv[2]))
END
if [ ! -x "$TEST_BIN" ]; then
    echo "ok 3 # SKIP the memshim command is not built"
elif "$TEST_VALID" "$TEST_TMP/report.json"; then
    echo "ok 3 - which is valid"
else
    echo "not ok 3 - which is valid"
fi
