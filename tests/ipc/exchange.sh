# Workers that exchange buffers through IPC handles: natively and under the pool the same, whatever the sizes; nothing is left behind.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"
here=$top_builddir/tests/ipc
LIMIT=100

# pooled PROGRAM...: as shimmed, with the pool. Refusals are not told: a thread opens what was freed.
pooled() {
    timeout -k 2 "$LIMIT" env LD_LIBRARY_PATH="$TEST_SIM" MEMSHIM_LOG=error MEMSHIM_REPORT="$TEST_TMP/%p.json" LD_PRELOAD="$preload" "$@"
}

# agree NAME PROGRAM...: natively and under the pool the program succeeds and says the same.
agree() {
    name=$1
    shift
    native "$@" >"$TEST_TMP/native" 2>&1
    echo "exit $?" >>"$TEST_TMP/native"
    pooled "$@" >"$TEST_TMP/pooled" 2>&1
    echo "exit $?" >>"$TEST_TMP/pooled"
    same "$name" "$TEST_TMP/native" "$TEST_TMP/pooled"
    try "$name, and right" grep -x 'exit 0' "$TEST_TMP/native"
}

plan 20
agree "2 workers, packed" "$here/exchange" 2 packed 4
agree "4 workers, packed" "$here/exchange" 4 packed 4
agree "8 workers, packed" "$here/exchange" 8 packed 3
agree "2 workers, single" "$here/exchange" 2 single 1
agree "4 workers, mixed" "$here/exchange" 4 mixed 1
agree "8 workers, mixed" "$here/exchange" 8 mixed 1
agree "threads on both sides" "$here/threads" 300
for file in "$TEST_TMP"/[0-9]*.json; do
    report=$file
    python3 - "$file" >>"$TEST_TMP/left" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
live = sum(d["live_bytes"] for d in r["devices"])
blocks = [b for s in r["segments"] for b in s["blocks"] if b.get("state", "live") == "live"]
print("left" if live or blocks else "clean", live, blocks[:3])
END
done
try "no worker leaves a block or an import behind" sh -c '! grep left "$1"' sh "$TEST_TMP/left"
try "and each of them was looked at" sh -c 'test "$(grep -c clean "$1")" -eq 30' sh "$TEST_TMP/left"

MEMSHIM_IPC=native
export MEMSHIM_IPC
agree "4 workers, packed, MEMSHIM_IPC=native" "$here/exchange" 4 packed 2
agree "threads on both sides, MEMSHIM_IPC=native" "$here/threads" 100
