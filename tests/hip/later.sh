# Functions of later HIP runtimes that begin captures: memshim knows their name at most, and asks nothing from their call on.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"
here=$top_builddir/tests/hip
SIM_PATH=$here/later
named='any("hipStreamBeginLaterCapture" in line and "has waited for the device" in line for line in r["diagnostics"])'

plan 19
for way in symbol default lookup next linked; do
    user=$here/later_user
    [ $way != linked ] || user=$here/later_linked
    both "reached by $way, every capture is what it is natively" MEMSHIM_LOG=none "$user" $way
    said "... and no argument is lost" '^a stream from after it: begins 0$'
    shimmed "$user" $way count >"$TEST_TMP/shimmed" 2>&1
    report "... and the report names it" "$named"
done

shimmed "$here/later_user" symbol count >"$TEST_TMP/shimmed" 2>&1
try "before the call a free waits" grep -x 'before: asked some times' "$TEST_TMP/shimmed"
try "from the call on nothing is asked" sh -c 'test "$(grep -c ": asked 0 times$" "$1")" = 2' sh "$TEST_TMP/shimmed"
report "what was freed since is free when the program has waited" 'r["devices"][0]["reserved_parts"]["limbo"] == 0'
shimmed "$here/later_user" bulk count >"$TEST_TMP/shimmed" 2>&1
report "looked up and not called, it is not spoken of" "not $named"
