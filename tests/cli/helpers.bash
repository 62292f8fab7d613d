# What the tests of the command share; after common.bash: load helpers
# shellcheck shell=bash disable=SC2154
data=$top_srcdir/tests/cli/data

setup() {
    [ -x "$TEST_BIN" ] || skip "the memshim command is not built (jansson or libdw is missing)"
    cd "$TEST_TMP" || return 1
    rm -rf -- *
}

# try ARGUMENTS...: the command, its two outputs kept apart in $out and $err, its status in $status.
try() {
    status=0
    "$TEST_BIN" "$@" >out.txt 2>err.txt || status=$?
    out=$(cat out.txt)
    err=$(cat err.txt)
    echo "memshim $* -> $status"
    echo "$out"
    echo "$err"
}

# one_line TEXT: it is one line, and not empty.
one_line() {
    [ -n "$1" ] && [ "$(echo "$1" | wc -l)" -eq 1 ]
}

# refused STATUS WORD...: the last try ended so, printed nothing, and said why in one line that holds the words.
refused() {
    local word
    [ "$status" -eq "$1" ] || return 1
    [ -z "$out" ] || return 1
    one_line "$err" || return 1
    shift
    for word in "$@"; do
        case $err in *"$word"*) ;; *) return 1 ;; esac
    done
}

# absent COMMAND...: it finds nothing. (bats passes over a line that begins with "!".)
absent() {
    if "$@"; then
        return 1
    fi
}
