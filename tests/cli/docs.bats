#!/usr/bin/env bats
# The manual pages and the completion, which are made from cmds.def, and what docs/ says of the format of the ledger
load "$TEST_HELPERS/common.bash"
load helpers

verbs() {
    sed -n 's/^MS_VERB(\([a-z]*\),.*/\1/p' "$top_srcdir/src/cli/cmds.def"
}

# flags VERB: its long options, one a line.
flags() {
    sed -n "s/^MS_FLAG($1, '.', \"[^\"]*\", \"\([^\"]*\)\".*/\1/p" "$top_srcdir/src/cli/cmds.def"
}

@test "every verb that takes a file or a program has a page that has each of its options, filled in" {
    for verb in $(verbs); do
        case $verb in version | help) continue ;; esac
        page=$top_builddir/docs/man/memshim-$verb.1
        [ -f "$page" ]
        for flag in $(flags "$verb"); do
            grep -qF -- "\\-\\-$(echo "$flag" | sed 's/-/\\-/g')" "$page"
        done
        grep -qF "\\fBmemshim $verb\\fR" "$top_builddir/docs/man/memshim.1"
    done
    absent grep -n '@[A-Z]*@' "$top_builddir"/docs/man/*.1
}

@test "the pages are sound roff" {
    need groff
    for page in "$top_builddir"/docs/man/*.1; do
        groff -man -Tascii -ww -z "$page" >warnings.txt 2>&1
        [ ! -s warnings.txt ]
    done
}

@test "the page of variables is what env --man prints" {
    "$TEST_BIN" env --man | diff - "$top_srcdir/docs/man/variables.man"
    for name in $(sed -n 's/^MS_OPTION([A-Z_]*, "\([A-Z_]*\)".*/\1/p' "$top_srcdir/src/base/options/options.def"); do
        grep -q "^.B MEMSHIM_$name\$" "$top_builddir/docs/man/memshim-env.1"
    done
}

# complete WORD...: what the completion offers for the last word.
complete_words() {
    bash -c 'complete() { :; }; . "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _memshim; printf "%s\n" "${COMPREPLY[@]}"' \
        bash "$top_builddir/src/cli/completion/memshim" "$@"
}

@test "completion offers verbs, the options of a verb, and files" {
    [ "$(complete_words memshim "" | sort)" = "$(verbs | sort)" ]
    [ "$(complete_words memshim le)" = leaks ]
    for verb in $(verbs); do
        for flag in $(flags "$verb"); do
            complete_words memshim "$verb" "--$flag" | grep -qx -- "--$flag"
        done
    done
    touch report.json
    [ "$(complete_words memshim summary rep)" = report.json ]
    [ "$(complete_words memshim help val)" = validate ]
}

@test "the contract knows every verb" {
    for verb in $(verbs); do
        [ "$verb" = help ] || grep -q "\`$verb\b" "$top_srcdir/docs/internals/contract.md"
    done
}

@test "the contract knows every variable" {
    for name in $(sed -n 's/^MS_OPTION([A-Z_]*, "\([A-Z_]*\)".*/\1/p' "$top_srcdir/src/base/options/options.def"); do
        grep -q "^| .*\bMEMSHIM_$name\b.* |" "$top_srcdir/docs/internals/contract.md"
    done
}

@test "docs/internals/ledger-format.md names the version and the tables that the code has" {
    version=$(sed -n 's/^#define MS_STORE_VERSION  *\([0-9]*\)$/\1/p' "$top_srcdir/src/base/store/store.h")
    [ -n "$version" ]
    grep -qF "| \`version\`, \`byte_order\` | $version; " "$top_srcdir/docs/internals/ledger-format.md"
    tables=$(sed -n 's/^MS_TABLE([A-Z_]*, "\([a-z_]*\)".*/\1/p' "$top_srcdir/src/base/store/tables.def")
    [ -n "$tables" ]
    for table in $tables; do
        grep -qE "^\| .*\`$table\`.* \|.* \|.* \|\$" "$top_srcdir/docs/internals/ledger-format.md"
    done
}

@test "the tables of figures in docs/user/report.md are those of figures.def, whose keys the schema and the contract have" {
    for of in POOL STREAM; do
        "$top_srcdir/scripts/generate" figures $of >figures.txt
        [ "$(wc -l <figures.txt)" -gt 8 ]
        sed -n "/^<!-- figures: $of -->\$/,/^<!-- -->\$/{//!p}" "$top_srcdir/docs/user/report.md" | diff figures.txt -
        for key in $(sed -n 's/^| `\([a-z_]*\)`.*/\1/p' figures.txt); do
            sed -n '/"pools": {/,/"apis": {/p' "$top_srcdir/src/report/report.schema.json" | grep -F "\"$key\": {" >/dev/null
            grep -q "pools\[\].*\b$key\b" "$top_srcdir/docs/internals/contract.md"
        done
    done
}
