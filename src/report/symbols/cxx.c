/* cxx.c - names of functions in C++; see cxx.h.
 *
 * Floor 4, command line only. */
#include "report/symbols/cxx.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* How many bytes at `name` are an operator with brackets in its name: "operator<<", "->" in "operator->". */
static size_t operator_bytes(const char *start, const char *name)
{
    size_t word = strlen("operator");

    if (strncmp(name, "operator", word) ||
        (name > start && (isalnum((unsigned char)name[-1]) || name[-1] == '_')))
        return 0;
    return word + strspn(name + word, "<>=-");
}

/* `name` without template arguments into `to`, which has as many bytes; false if brackets do not match. */
static bool strip(const char *name, char *to)
{
    const char *start = name;
    size_t depth = 0;

    while (*name) {
        size_t word = operator_bytes(start, name);

        if (!word && *name == '<')
            depth++;
        if (!depth) {
            memcpy(to, name, word ? word : 1);
            to += word ? word : 1;
        }
        if (*name == '>' && !(name > start && name[-1] == '-') && depth-- == 0)
            return false;
        name += word ? word : 1;
    }
    *to = '\0';
    return depth == 0;
}

char *ms_cxx_plain(const char *name)
{
    char *plain = malloc(strlen(name) + 1);

    if (plain && (*name == '<' || !strip(name, plain)))
        memcpy(plain, name, strlen(name) + 1);
    return plain;
}

static bool cut_end(char *name, const char *end)
{
    size_t length = strlen(name), wanted = strlen(end);

    if (length <= wanted || strcmp(name + length - wanted, end))
        return false;
    name[length - wanted] = '\0';
    return true;
}

/* Qualifiers, and which copy of the function it is: " const", " &&", " [clone .cold]". */
static void drop_suffixes(char *name)
{
    static const char *const ends[] = {" const", " volatile", " &", " &&"};
    size_t i = 0;

    while (i < MS_ARRAY_LEN(ends)) {
        char *clone = strstr(name, " [clone ");

        if (clone && clone > name)
            *clone = '\0';
        i = cut_end(name, ends[i]) ? 0 : i + 1;
    }
}

/* The list of parameters at the end; a name that is nothing else, and one whose brackets do not match,
 * stay. */
static void drop_parameters(char *name)
{
    size_t length = strlen(name), depth = 0;

    if (!length || name[length - 1] != ')')
        return;
    for (size_t i = length; i-- > 1;) {
        depth += name[i] == ')';
        if (name[i] == '(' && --depth == 0) {
            name[i] = '\0';
            return;
        }
    }
}

/* The beginning of the name itself, behind the type that it returns: at the last blank that is in no brackets
 * and before no operator ("operator new" has one). */
static const char *behind_type(const char *name)
{
    const char *begin = name;
    size_t depth = 0;

    for (const char *at = name; *at && !(depth == 0 && operator_bytes(name, at)); at++) {
        if (strchr("([{", *at))
            depth++;
        else if (strchr(")]}", *at) && depth-- == 0)
            return name;
        else if (*at == ' ' && !depth && at[1])
            begin = at + 1;
    }
    return begin;
}

char *ms_cxx_function(const char *name)
{
    char *plain = ms_cxx_plain(name);
    const char *begin;

    if (!plain || *plain == '<')
        return plain;
    drop_suffixes(plain);
    drop_parameters(plain);
    begin = behind_type(plain);
    memmove(plain, begin, strlen(begin) + 1);
    return plain;
}
