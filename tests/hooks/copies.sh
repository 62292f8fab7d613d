# Several copies of one runtime, opened by path, in every order: a call reaches the copy that the loader would have bound it to,
# and the same one in each run. TEST_COPIES=1000 makes that many runs of each order. Run by the harness.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

runs=${TEST_COPIES-4}
plan 19

mkdir "$TEST_TMP/a" "$TEST_TMP/b" "$TEST_TMP/c"
for copy in a b c; do cp "$TEST_SIM/libcudart.so.13" "$TEST_TMP/$copy/"; done
ln -s b "$TEST_TMP/link"
A=$TEST_TMP/a/libcudart.so.13
B=$TEST_TMP/b/libcudart.so.13
LINK=$TEST_TMP/link/libcudart.so.13
PLUGIN=$here/copies_plugin.so       # linked with the runtime; all its calls have wrappers
OTHERS=$here/copies_others.so       # calls functions of the runtime's that have none as well
UNLINKED=$here/copies_unlinked.so   # takes the runtime from whoever brought it
DEPS=$here/copies_deps.so           # brings one
SIM_PATH=$TEST_SIM:$here

# every NAME PROGRAM ARGUMENTS...: each run under memshim prints what the one without it prints.
every() {
    name=$1
    shift
    native "$@" >"$TEST_TMP/native" 2>&1
    echo "exit $?" >>"$TEST_TMP/native"
    wrong=0
    run=0
    while [ "$run" -lt "$runs" ]; do
        run=$((run + 1))
        REPORT=none shimmed "$@" >"$TEST_TMP/shimmed" 2>&1
        echo "exit $?" >>"$TEST_TMP/shimmed"
        cmp -s "$TEST_TMP/native" "$TEST_TMP/shimmed" && continue
        wrong=$((wrong + 1))
        cp "$TEST_TMP/shimmed" "$TEST_TMP/wrong"
    done
    check "$name" "$wrong"
    [ "$wrong" -eq 0 ] || {
        echo "# $wrong of $runs runs differ"
        diff "$TEST_TMP/native" "$TEST_TMP/wrong" | sed 's/^/# /'
    }
}

copies=$here/copies
every "two copies, and a plugin that is linked with that name" "$copies" local="$A" local="$B" calls="$PLUGIN"
said "it reaches the first" '^plugin: cudaFree [1-9][0-9]* in a '
every "... in the other order" "$copies" local="$B" local="$A" calls="$PLUGIN"
said "it reaches the first again" '^plugin: cudaFree [1-9][0-9]* in b '
every "the second opened globally" "$copies" local="$A" global="$B" calls="$PLUGIN"
said "the global one wins" '^plugin: cudaFree [1-9][0-9]* in b '
every "a plugin that also calls what memshim does not wrap" "$copies" local="$A" global="$B" calls="$OTHERS"
every "the first opened globally" "$copies" global="$A" local="$B" calls="$PLUGIN" calls="$OTHERS"
every "a plugin that is not linked with any" "$copies" local="$A" global="$B" calls="$UNLINKED"
every "one made global later" "$copies" local="$A" local="$B" again="$B" calls="$UNLINKED"
every "... by another name" "$copies" local="$A" local="$B" again="$LINK" calls="$UNLINKED" calls="$PLUGIN"
every "one made global by a way that is not watched: what the loader has bound already tells" "$copies" local="$A" namespace="$B" calls="$OTHERS"
every "a library that brings one into the global scope" "$copies" local="$A" global="$DEPS" calls="$UNLINKED"
every "pointers of a plugin's, called by who is not linked" "$copies" local="$B" local="$A" pointers="$OTHERS"
every "the first closed before the plugin came" "$copies" local="$A" local="$B" close="$A" calls="$PLUGIN"
every "one linked, one opened" "$here/copies_linked" local="$A" calls="$PLUGIN" calls="$OTHERS"
every "one linked, one opened globally" "$here/copies_linked" global="$A" calls="$PLUGIN" calls="$UNLINKED"
every "one linked, two opened" "$here/copies_linked" local="$B" global="$A" calls="$UNLINKED" calls="$OTHERS"
SIM_PATH=$TEST_TMP/c:$TEST_SIM:$here
every "... and the linked one another" "$here/copies_linked" global="$B" local="$A" calls="$PLUGIN" pointers="$OTHERS"
