# Workers that exchange buffers through IPC handles: natively and under the pool the same, whatever the sizes; nothing is left behind.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"
here=$top_builddir/tests/ipc
LIMIT=${TEST_EMULATED:+900}
LIMIT=${LIMIT:-100}

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

# Under a sanitizer, or emulated, the large ones take minutes.
rounds=4 most=8
[ -z "$TEST_SANITIZE${TEST_EMULATED-}" ] || rounds=1 most=4

plan 20
agree "2 workers, packed" "$here/exchange" 2 packed "$rounds"
agree "4 workers, packed" "$here/exchange" 4 packed "$rounds"
agree "8 workers, packed" "$here/exchange" 8 packed "$rounds"
agree "2 workers, single" "$here/exchange" 2 single 1
agree "2 workers, mixed" "$here/exchange" 2 mixed 2
agree "$most workers, mixed" "$here/exchange" "$most" mixed 1
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
try "and each of them was looked at" sh -c 'test "$(grep -c clean "$1")" -eq "$2"' sh "$TEST_TMP/left" $((20 + most))

MEMSHIM_IPC=native
export MEMSHIM_IPC
agree "4 workers, packed, MEMSHIM_IPC=native" "$here/exchange" 4 packed 2
agree "threads on both sides, MEMSHIM_IPC=native" "$here/threads" 100
