# Memory of one process in another: seen once in each, and counted as the device's in the one that allocated it.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"
MODE=track # what the pool makes of exports is a matter of its own

plan 9
REPORT=$TEST_TMP/%p.json
both "two processes share memory" "$here/ipc_pair"
said "the importer reads what was written" '^value 42$'
set -- "$TEST_TMP"/[0-9]*.json
check "each process wrote a report" $(($# != 2))
for file in "$@"; do
    if grep -q cudaIpcOpenMemHandle "$file"; then cp "$file" "$TEST_TMP/importer.json"; else cp "$file" "$TEST_TMP/exporter.json"; fi
done
report=$TEST_TMP/exporter.json
report "the exporter's holds one allocation of 3 MiB" \
    'live == 3 << 20 and apis["cudaMalloc"]["calls"] == 1 and apis["cudaIpcGetMemHandle"]["calls"] == 1 if "cudaIpcGetMemHandle" in apis else live == 3 << 20'
report=$TEST_TMP/importer.json
report "the importer's one import that is still open, and no memory of its own" \
    'live == 0 and [(b["kind"], b["api"], b["bytes"]) for s in r["segments"] for b in s["blocks"]] == [("imported", "cudaIpcOpenMemHandle", 3 << 20)] and apis["cudaIpcCloseMemHandle"]["failures"] == 1'

# What is imported out of a pool is freed as one's own memory is, and may come back at the same address.
REPORT=$TEST_TMP/report.json
report=$REPORT
exact='r["coverage"]["unseen_frees"] == 0 and r["coverage"]["replaced_blocks"] == 0 and [(m["total_count"], m["live_count"]) for m in r["memory"] if m["kind"] == "imported"]'
both "a pointer is imported and freed ten times" "$here/import_again" 10 0
report "each of them is a block of its own, and over" "$exact == [(11, 0)]"
shimmed "$here/import_again" 100 4 >"$TEST_TMP/said"
check "threads take turns" $?
report "as are those that threads take from each other" "$exact == [($(sed -n 's/^imports //p' "$TEST_TMP/said"), 0)]"
