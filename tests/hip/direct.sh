# HIP's calls that a thread answers out of what it has at hand: the program sees what it sees natively, of each version, and the vendor is
# asked next to nothing.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

plan 28
programs=$top_builddir/tests/hip
export MEMSIM_DEVICES=2

for version in 5 6 7; do
    for scenario in devices errors threads streams; do
        both "version $version: $scenario" "$programs/direct_$version" "$scenario"
    done
    both "version $version: while work goes on" MEMSIM_COST=memset=200000000 "$programs/direct_$version" going_on
    shimmed MEMSIM_COUNT=1 "$programs/direct_$version" count >"$TEST_TMP/shimmed" 2>&1
    nothing='hipMalloc 0 hipFree 0 hipMallocAsync 0 hipFreeAsync 0'
    # Up to version 6 each call leaves its own status, which a hit has the vendor do; from 7 on an error stays, so that a hit asks for none.
    test "$version" = 7 && errors='hipGetLastError 0 hipPeekAtLastError [0-9]{1,2}' || errors='hipGetLastError 2[0-9]{2} hipPeekAtLastError [0-9]{1,2}'
    case ${TEST_SANITIZE-} in
    *thread*)
        for fact in "a pair" "... of a stream" "... of the null stream"; do
            skip "version $version: what $fact asks" "what a thread has at hand is not told under this sanitizer"
        done
        ;;
    *)
        said "version $version: a pair asks once which device is current" "^a pair: hipGetDevice 1[0-9]{2} $errors $nothing"
        said "... not for a stream that the program has made" "^of a stream: hipGetDevice [0-9]{1,2} $errors $nothing"
        said "... and twice for one that each device has" "^of the null stream: hipGetDevice 2[0-9]{2} $errors $nothing"
        ;;
    esac
    report "and each is counted once" \
        'all(apis[f"hip{name}"]["calls"] == apis[f"hip{name}"]["served"] for name in ("Malloc", "Free", "MallocAsync", "FreeAsync")) and apis["hipMalloc"]["calls"] == 300 and apis["hipMallocAsync"]["calls"] == 600 and live == 0'
done

shimmed MEMSIM_COUNT=1 "$programs/direct_7" many >"$TEST_TMP/shimmed" 2>&1
said "a stream that has nothing to do needs no event when memory is freed" ' hipEventRecord [0-9]{1,2} '
