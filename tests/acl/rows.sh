#!/bin/sh
# Every memory function of the Ascend interface has a row: what src/vendor/abi/acl_fn.h declares, but for what neither makes nor ends nor
# tells of memory. That a row's types are those declared there is the compiler's business (hooks/table/acl.c).
# shellcheck disable=SC2154 # run-test exports the directories
set -u

. "$TEST_HELPERS/tap.sh"

others='aclInit|aclrtDevice(CanAccessPeer|DisablePeerAccess|EnablePeerAccess|GetBareTgid)|aclrtEventElapsedTime|aclrtGet(DeviceCount|PrimaryCtxState|RunMode|SocName|Version)|aclrtLaunchHostFunc|aclrtMem(cpy|set)(Async)?'
plan 4
LC_ALL=C
export LC_ALL
grep -o '\bacl[A-Za-z0-9]*(' "$top_srcdir/src/vendor/abi/acl_fn.h" | tr -d '(' | sort -u | grep -vxE "$others" >"$TEST_TMP/declared"
"$top_builddir/hooks/list_rows" | awk '$1 == "acl" { print $2 }' | sort >"$TEST_TMP/rows"
diff "$TEST_TMP/declared" "$TEST_TMP/rows" >&2
check "what is declared has a row, and no other function does" $?
[ "$(grep -vcx aclFinalize "$TEST_TMP/rows")" -eq 94 ]
check "the interface has 94 memory functions, and aclFinalize ends them all" $?
"$top_builddir/hooks/list_rows" --markdown >"$TEST_TMP/page"
awk -F'|' '/^\| `acl/ && $5 !~ /[a-z]/ { print; found = 1 } END { exit found }' "$TEST_TMP/page" >&2
check "each has its reason" $?
# The totals at the top are those of the rows.
"$top_builddir/hooks/list_rows" | awk '{ all[$1]++; n[$1 " " $4]++ }
    END { for (a in all) printf "%d %d %d %d\n", n[a " SERVED"], n[a " FOLLOWED"], n[a " PASSED"], all[a] }' | sort >"$TEST_TMP/counted"
sed -n '/^| interface /,/^$/p' "$TEST_TMP/page" | sed -n 's/^| [A-Z].* | \([0-9]*\) | \([0-9]*\) | \([0-9]*\) | \([0-9]*\) |$/\1 \2 \3 \4/p' |
    sort >"$TEST_TMP/totals"
diff "$TEST_TMP/counted" "$TEST_TMP/totals" >&2
check "the totals of every interface are at the top of the page" $?
