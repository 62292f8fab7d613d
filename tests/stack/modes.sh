# MEMSHIM_STACKS through the whole library, on the simulated GPU: which stacks the report holds in each mode, and that totals
# are exact in all of them.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

[ -z "$TEST_SANITIZE" ] || skip_all "a library with a sanitizer is not preloaded into every program"
program=$top_builddir/tests/stack/many_blocks
total='(4000 * 65536 + 10 * (2 << 20))'

# A site's stack as frames; its sites by the size of their blocks.
define='[globals().update(
    depth=lambda s: 0 if not s["stack"] else 1 + depth({"stack": r["stacks"][s["stack"]][0]}),
    small=[s for s in r["sites"] if s["size_hist"] and list(s["size_hist"]) == ["65536"]],
    large=[s for s in r["sites"] if s["size_hist"] and list(s["size_hist"]) == ["2097152"]])]'

# holds NAME EXPRESSION: over the report, with depth(site), small and large.
holds() { report "$1" "[$define and ($2)][0]"; }

plan 21
for mode in all sample fp off; do
    MEMSHIM_STACKS=$mode shimmed "$program" >"$TEST_TMP/out" 2>&1
    try "$mode: the program sees what it should" grep -qx 'failures 1' "$TEST_TMP/out"
    report "$mode: totals are exact" "live == $total and apis['cudaMalloc']['calls'] == 4011"
    report "$mode: and sites add up to them" "sum(s['live_bytes'] for s in r['sites']) == $total"
    case $mode in
    all)
        holds "all: one stack of each, whole" 'len(small) == len(large) == 1 and depth(small[0]) >= 24 <= depth(large[0])'
        report "all: of what failed too" 'r["oom"][0]["stack"] != 0'
        ;;
    sample)
        # 250 of 4000 are expected; six standard deviations are 92.
        holds "sample: as many of the small ones as their size says" \
            'sum(s["live_count"] for s in small if s["stack"]) in range(158, 343)'
        # The same six deviations, of the bytes and the blocks that those few stand for.
        holds "sample: and they stand for about all of them" \
            '0.63 < sum(s.get("estimated_live_count", 0) for s in small) / 4000 < 1.37'
        holds "sample: in bytes as well" \
            '0.63 < sum(s.get("estimated_total_bytes", 0) for s in small) / (4000 * 65536) < 1.37'
        holds "sample: a large one stands for itself" \
            'large[0]["estimated_live_bytes"] == large[0]["live_bytes"] and large[0]["estimated_live_count"] == 10'
        holds "sample: all of the large ones, whole" 'large[0]["live_count"] == 10 and depth(large[0]) >= 24'
        ;;
    off) report "off: none" 'all(s["stack"] == 0 for s in r["sites"]) and len(r["stacks"]) <= 1' ;;
    esac
done

# A container's filter may refuse process_vm_readv; then it is asked of each page whether it can be read.
name="a filter that refuses to read memory: the same stacks"
filtered=$top_builddir/tests/ledger/filtered
takes=77 # what emulates takes none, and the program is not built there
[ -n "${TEST_EMULATED-}" ] || { "$filtered" true; takes=$?; }
if [ "$takes" -eq 77 ]; then
    skip "$name" "${TEST_EMULATED:-the kernel} takes no filter of system calls"
else
    REPORT=$TEST_TMP/plain.json shimmed "$program" >"$TEST_TMP/out" 2>&1
    shimmed "$filtered" "$program" >"$TEST_TMP/out" 2>&1
    try "$name" python3 - "$TEST_TMP/plain.json" "$report" <<'END'
import json, sys
one, other = ([json.load(open(path))[key] for key in ("stacks", "frames")] for path in sys.argv[1:])
sys.exit(one != other or len(one[0]) < 50)
END
fi
