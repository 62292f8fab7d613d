# Functions of later drivers that begin captures: memshim knows their name at most, and destroys nothing.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"
SIM_PATH=$here/later
named='any("cuStreamBeginLaterCapture" in line and "an event in each stream" in line for line in r["diagnostics"])'

plan 25
for way in symbol default lookup next linked; do
    user=$here/later_user
    [ $way != linked ] || user=$here/later_linked
    both "reached by $way, every capture is what it is natively" MEMSHIM_LOG=none "$user" $way
    said "... and no argument is lost" '^a blocking stream: begins 0$'
    shimmed "$user" $way count >"$TEST_TMP/shimmed" 2>&1
    report "... and the report names it" "$named"
done

both "reached as a later version of a known one, every capture is what it is natively" MEMSHIM_LOG=none "$here/later_user" version
said "... no argument of it is lost" '^a blocking stream: begins 0$'
said "... and none of another function's" '^a later version: 0$'
report "... and the report says so" 'any("later version" in spot for spot in map(str, r["coverage"]["blind_spots"]))'

# From the first call on no event is recorded over the context, and frees have events all the same.
shimmed "$here/later_user" symbol count >"$TEST_TMP/shimmed" 2>&1
try "before the call, events are over the context" grep -E '^before: [1-9][0-9]* over the context, 0 in streams' "$TEST_TMP/shimmed"
try "from the call on, in streams" sh -c 'before=$(sed -n "s/^before: \([0-9]*\) over.*/\1/p" "$1"); grep -E "^after: $before over the context, [1-9][0-9]* in streams, 0 taken in$" "$1"' sh "$TEST_TMP/shimmed"
report "what was freed is not in limbo for ever" 'r["devices"][0]["reserved_parts"]["limbo"] == 0'
shimmed "$here/later_user" bulk count >"$TEST_TMP/shimmed" 2>&1
try "looked up and not called, it changes nothing" grep -E '^after: [1-9][0-9]* over the context, 0 in streams' "$TEST_TMP/shimmed"
report "... and is not spoken of" "not $named"
try "no event is asked for in a stream that another thread ends" shimmed "$here/later_user" ends
