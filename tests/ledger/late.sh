# What destructors free is no leak, in whichever order they run. A free after the report was written is counted in it as late: the
# report says how many there were, and stays whole; whoever reads of the leaks is told.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

[ -z "$TEST_SANITIZE" ] || skip_all "a sanitizer's library cannot be preloaded into a plain program"
[ -x "$TEST_BIN" ] || skip_all "the memshim command is not built (jansson or libdw is missing)"
plan 22
user=$top_builddir/tests/ledger/late_user
SIM_PATH=$TEST_SIM:$top_builddir/tests/ledger

for MODE in track pool; do
    export LATE=yes
    try "$MODE: the program ends as always" shimmed "$user"
    report "$MODE: three frees were late" 'r["coverage"]["late_frees"] == 3'
    report "$MODE: the other figures are those of the moment before" \
        'live == 4 * 4096 and sum(leak["bytes"] for leak in r["leaks"]) == 4 * 4096 and r["run"]["complete"]'
    try "$MODE: the report is valid still" "$TEST_VALID" "$report"
    try "$MODE: nothing else is left behind" sh -c '! ls "$1"/*.ledger 2>/dev/null' sh "$MEMSHIM_DIR"
    try "$MODE: the summary has them" sh -c '"$1" summary --all "$2" | grep "frees after the report 3"' sh "$TEST_BIN" "$report"
    try "$MODE: who reads of leaks is told" sh -c '"$1" leaks "$2" | grep "3 blocks were freed after"' sh "$TEST_BIN" "$report"
    try "$MODE: in JSON, too" sh -c '"$1" leaks --json "$2" | grep "\"late_frees\": 3"' sh "$TEST_BIN" "$report"

    # What a destructor frees is not late: one that runs behind memshim's own place among the libraries, and one before it.
    unset LATE
    shimmed "$user"
    report "$MODE: frees of a destructor are no leaks" \
        'r["coverage"]["late_frees"] == 0 and live == 4096 and sum(leak["bytes"] for leak in r["leaks"]) == 4096'
    PRELOAD=$top_builddir/tests/ledger/liblate.so:$preload
    shimmed "$user"
    report "$MODE: nor of one that runs first" 'r["coverage"]["late_frees"] == 0 and live == 4096'
    try "$MODE: and nobody hears of any" sh -c '! "$1" leaks "$2" | grep "were freed after"' sh "$TEST_BIN" "$report"
    unset PRELOAD
done
