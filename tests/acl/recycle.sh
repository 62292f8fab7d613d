#!/bin/sh
# Physical handles of the Ascend runtime's are recycled whole: what is asked of the vendor, what never is recycled, what a program sees.
# shellcheck source=tests/hooks/lib.sh
# shellcheck disable=SC2154 # run-test exports the directories
. "$top_srcdir/tests/hooks/lib.sh"

part() { # part DESCRIPTION PART... [-- VARIABLE=VALUE...]
    name=$1
    shift
    words=
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        words="$words $1"
        shift
    done
    [ $# -eq 0 ] || shift
    rm -f "$report"
    # shellcheck disable=SC2086 # the words are separate ones
    try "$name" env MEMSIM_COUNT=1 MEMSIM_DEVICES=2 "$@" "MEMSHIM_REPORT=$report" "LD_PRELOAD=$preload" \
        "$top_builddir/tests/acl/recycle" $words
    try "$name: the report holds together" "$TEST_VALID" "$report"
}

plan 34
part "the second round of a loop makes no call of the vendor's" loop
report "the report counts what was saved" '(apis["aclrtMallocPhysical"]["served"], apis["aclrtFreePhysical"]["served"], r["devices"][0]["api"],
    r["devices"][0]["reserved_parts"]["cached"], r["devices"][0]["vendor_calls_saved"]) == (16, 24, "acl", 160 << 20, 40)'
part "what somebody else may reach is not recycled" never
part "a handle that waits is none" after
part "work that comes too late touches nobody's memory" late
part "what waits is given back where memory is short" short -- MEMSIM_MEMORY=64M
part "nothing waits with MEMSHIM_KEEP=0" keep 0 -- MEMSHIM_KEEP=0
part "no more waits than MEMSHIM_KEEP" keep 3 -- MEMSHIM_KEEP=6M
part "a limit is a limit" limit -- MEMSHIM_LIMIT=32M
report "the report says why there was no memory" 'r["oom"][0]["api"] == "aclrtMallocPhysical" and r["oom"][0]["device_api"] == "acl"'
for next in free make malloc; do
    part "after a rest, a $next" rest "$next" -- MEMSHIM_MEMINFO=real
done
part "contents, as they are" contents 0 33
part "contents, where what is new is filled" contents a5 a5 -- MEMSHIM_POISON=alloc
part "contents, where what was freed is filled" contents 0 df -- MEMSHIM_POISON=free
part "contents, where both are" contents a5 a5 -- MEMSHIM_POISON=both
part "the ends of devices" reset
