# Reads cmds.def and writes what is made from it. Usage: awk -f cmds.awk -v what=completion cmds.def, or
# awk -f cmds.awk -v what=man -v verb=VERB -v version=V -v variables=FILE cmds.def PAGE.in: PAGE with @SYNOPSIS@, @OPTIONS@,
# @VERBS@ and @VARIABLES@ filled in.

# The strings of a row, without the quotes, into field[1..]; what lies between them is commas.
function split_row(row,    n) {
    n = 0
    while (match(row, /"([^"\\]|\\.)*"/)) {
        field[++n] = substr(row, RSTART + 1, RLENGTH - 2)
        row = substr(row, RSTART + RLENGTH)
    }
    return n
}

function word_of(row) {
    sub(/^MS_(VERB|FLAG)\(/, "", row)
    sub(/,.*/, "", row)
    return row
}

function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text
}

function print_options(name,    i) {
    for (i = 1; i <= flags; i++) {
        if (flag_verb[i] != name)
            continue
        print ".TP"
        if (flag_letter[i] != "")
            printf "\\fB\\-%s\\fR, ", flag_letter[i]
        printf "\\fB\\-\\-%s\\fR", roff(flag_name[i])
        if (flag_argument[i] ~ /^\[=/)
            printf "[=\\fI%s\\fR]", substr(flag_argument[i], 3, length(flag_argument[i]) - 3)
        else if (flag_argument[i] != "")
            printf " \\fI%s\\fR", flag_argument[i]
        print ""
        print roff(flag_text[i]) "."
    }
    print ".TP"
    print "\\fB\\-h\\fR, \\fB\\-\\-help\\fR"
    print "print the options."
}

function print_verbs(    i) {
    for (i = 1; i <= verbs; i++) {
        print ".TP"
        printf "\\fBmemshim %s\\fR %s\n", verb_name[i], roff(verb_usage[i])
        print roff(verb_text[i]) "."
    }
}

function print_completion(    i, k, words) {
    print "# Completion of memshim for bash; made from cmds.def."
    print "_memshim()"
    print "{"
    print "    local verb=${COMP_WORDS[1]-} word=${COMP_WORDS[COMP_CWORD]} words="
    print "    if [ \"$COMP_CWORD\" -eq 1 ]; then"
    words = ""
    for (i = 1; i <= verbs; i++)
        words = words (i > 1 ? " " : "") verb_name[i]
    printf "        mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")\n", words
    print "        return"
    print "    fi"
    print "    case $verb in"
    for (i = 1; i <= verbs; i++) {
        printf "    %s) words='", verb_name[i]
        for (k = 1; k <= flags; k++)
            if (flag_verb[k] == verb_name[i])
                printf "--%s%s ", flag_name[k], flag_argument[k] ~ /^\[=/ ? " --" flag_name[k] "=" : ""
        print "--help' ;;"
    }
    print "    esac"
    print "    case $word in"
    print "    -*) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;"
    print "    *)"
    print "        if [ \"$verb\" = help ]; then"
    printf "            mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")\n", words
    print "        elif [ \"$verb\" = run ] || [ \"$verb\" = doctor ]; then"
    print "            mapfile -t COMPREPLY < <(compgen -A command -A file -- \"$word\")"
    print "        else"
    print "            mapfile -t COMPREPLY < <(compgen -A file -- \"$word\")"
    print "        fi"
    print "        ;;"
    print "    esac"
    print "}"
    print "complete -o filenames -F _memshim memshim"
}

/^MS_VERB\(/ && FILENAME ~ /cmds\.def$/ {
    split_row($0)
    verb_name[++verbs] = word_of($0)
    verb_usage[verbs] = field[1]
    verb_text[verbs] = field[2]
    next
}
/^MS_FLAG\(/ && FILENAME ~ /cmds\.def$/ {
    split_row($0)
    flag_verb[++flags] = word_of($0)
    flag_letter[flags] = field[1]
    flag_name[flags] = field[2]
    flag_argument[flags] = field[3]
    flag_text[flags] = field[4]
    next
}
FILENAME ~ /cmds\.def$/ { next }

/^@SYNOPSIS@$/ {
    for (i = 1; i <= verbs; i++)
        if (verb_name[i] == verb)
            printf "\\fBmemshim %s\\fR %s\n", verb, roff(verb_usage[i])
    next
}
/^@OPTIONS@$/ { print_options(verb); next }
/^@VERBS@$/ { print_verbs(); next }
/^@VARIABLES@$/ {
    while ((getline line < variables) > 0)
        print line
    next
}
{ gsub(/@VERSION@/, version); print }

END {
    if (what == "completion")
        print_completion()
}
