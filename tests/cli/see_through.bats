#!/usr/bin/env bats
# memshim run --see-through: what is set, what stays the user's, and that the page has the same rows
load "$TEST_HELPERS/common.bash"
load helpers

setup() {
    [ -x "$TEST_BIN" ] || skip "the memshim command is not built (jansson or libdw is missing)"
    cd "$TEST_TMP" || return 1
    rm -rf -- *
    mkdir -p bin lib
    cp "$TEST_BIN" bin/memshim
    cp "$top_builddir/tests/cli/fake_shim.so" lib/libmemshim.so
    TEST_BIN=$TEST_TMP/bin/memshim
    # shellcheck disable=SC2046
    unset $(names)
}

# rows: framework, variable and value, one row a line, separated by bars.
rows() {
    sed -n 's/^    {"\([^"]*\)", "\([^"]*\)", "\([^"]*\)"},$/\1|\2|\3/p' "$top_srcdir/src/cli/run/see_through.c"
}

names() {
    rows | cut -d'|' -f2
}

@test "every variable is set in the program's environment, and one line says which" {
    try run --see-through -- env
    [ "$status" -eq 0 ]
    [ "$(rows | wc -l)" -ge 8 ]
    while IFS='|' read -r framework variable value; do
        grep -qxF "$variable=$value" out.txt
        [[ $(grep -e '--see-through: set' err.txt) == *" $variable=$value"* ]]
    done < <(rows)
    [ "$(grep -c -e --see-through err.txt)" -eq 1 ]
}

@test "without the option none is set" {
    try run -- env
    while IFS='|' read -r framework variable value; do
        absent grep -q "^$variable=" out.txt
    done < <(rows)
}

@test "what the user has set stays, also to nothing, and a line names what it overrides" {
    XLA_PYTHON_CLIENT_ALLOCATOR=bfc PYTORCH_NO_CUDA_MEMORY_CACHING='' try run --see-through -- env
    [ "$status" -eq 0 ]
    grep -qxF XLA_PYTHON_CLIENT_ALLOCATOR=bfc out.txt
    grep -qxF PYTORCH_NO_CUDA_MEMORY_CACHING= out.txt
    [ "$(grep -c 'is yours and stays' err.txt)" -eq 2 ]
    grep 'XLA_PYTHON_CLIENT_ALLOCATOR=bfc is yours and stays' err.txt | grep -q 'not cuda_async.*JAX'
    absent grep -q 'set.* XLA_PYTHON_CLIENT_ALLOCATOR' err.txt
}

@test "the value that would be set is no override, and --quiet says nothing" {
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 try run --see-through -- env
    absent grep -q 'is yours' err.txt
    PYTORCH_NO_CUDA_MEMORY_CACHING=0 try run -q --see-through -- env
    [ -z "$err" ]
    grep -qxF PYTORCH_NO_CUDA_MEMORY_CACHING=0 out.txt
}

@test "what a user's value holds does not reach the terminal raw" {
    XLA_PYTHON_CLIENT_ALLOCATOR=$'\e[31mred\n' try run --see-through -- true
    absent grep -q $'\e' err.txt
    [ "$(grep -c 'XLA_PYTHON_CLIENT_ALLOCATOR' err.txt)" -eq 1 ]
}

@test "docs/user/see-through.md has the same rows, each with its source" {
    page=$top_srcdir/docs/user/see-through.md
    while IFS='|' read -r framework variable value; do
        grep -qE "^\| $framework \| \`$variable=$value\` \| [^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \|\$" "$page"
    done < <(rows)
    [ "$(grep -cE '^\| [A-Za-z_-]+ \| `[A-Z][A-Za-z_]*=' "$page")" -eq "$(rows | wc -l)" ]
}
