/* options_value.c - reading one option's value from text, and finding options by name.
 *
 * Floor 0. Pure functions. */
#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/options/options_value.h"
#include "base/size.h"
#include "base/thread/aux_stack.h"

enum {
    NAME_BYTES_MAX = 32,
    PAIR_FIRST_MAX = 32,
    REGEX_SIZE_MAX = 4096,
    REGEX_DEPTH_MAX = 64,
    REGEX_OPTIONS_MAX = 40,
    REGEX_ANCHORED_MAX = 128
};

/* Index of `text` in the list "a|b|c", or -1. */
static int word_index(const char *words, const char *text)
{
    size_t length = strlen(text);
    for (int index = 0; *words; index++) {
        size_t word_length = strcspn(words, "|");
        if (word_length == length && memcmp(words, text, length) == 0)
            return index;
        words += word_length;
        if (*words == '|')
            words++;
    }
    return -1;
}

/* Decimal digits at *text_p, which is moved past them; false if there are none or they overflow. */
static bool read_digits(const char **text_p, uint64_t *number_p)
{
    const char *p = *text_p;
    uint64_t number = 0;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++) {
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
            return false;
    }
    *text_p = p;
    *number_p = number;
    return true;
}

static bool parse_enum(const struct ms_option_info *info, const char *text, struct ms_option_value *value_p)
{
    int index = word_index(info->values, text);
    if (index < 0)
        return false;
    value_p->number = index;
    return true;
}

/* All integer options are counts: "min-max" of digits. */
static bool parse_int(const struct ms_option_info *info, const char *text, struct ms_option_value *value_p)
{
    const char *range = info->values;
    uint64_t low = 0, high = INT64_MAX, number;
    if (read_digits(&range, &low) && *range++ == '-')
        read_digits(&range, &high);
    if (!read_digits(&text, &number) || *text || number < low || number > high)
        return false;
    value_p->number = (int64_t)number;
    return true;
}

/* Of BYTES, behind the least. */
static const char *size_words(const struct ms_option_info *info)
{
    return info->type == MS_TYPE_BYTES ? info->values + strcspn(info->values, "|") + 1 : info->values;
}

/* On failure value_p may be changed: ms_option_parse puts it back. */
static bool parse_size(const struct ms_option_info *info, const char *text, struct ms_option_value *value_p)
{
    const char *values = info->values;
    uint64_t number, least = 0;
    if (*text && word_index(size_words(info), text) >= 0) { /* the only such word is "none": no bound */
        value_p->bytes = UINT64_MAX;
        value_p->percent = false;
        return true;
    }
    const char *size = text;
    if (info->type == MS_TYPE_BYTES) {
        ms_size_read(&values, &least);
    } else if (read_digits(&text, &number) && strcmp(text, "%") == 0) {
        value_p->bytes = number;
        value_p->percent = true;
        return number <= 100;
    }
    value_p->percent = false;
    return ms_size_read(&size, &value_p->bytes) && !*size && value_p->bytes >= least;
}

/* "24G/40G", "30%/50%" or one of them alone: on failure value_p may be changed. What is larger is not known
 * of a size and a share. */
static bool parse_pair(const struct ms_option_info *info, const char *text, struct ms_option_value *value_p)
{
    char first[PAIR_FIRST_MAX];
    size_t length = strcspn(text, "/");
    bool has_most = text[length] == '/';
    if (length >= sizeof first || (has_most && !parse_size(info, text + length + 1, value_p)))
        return false;
    value_p->most_bytes = has_most ? value_p->bytes : UINT64_MAX;
    value_p->most_percent = has_most && value_p->percent;
    memcpy(first, text, length);
    first[length] = '\0';
    return parse_size(info, first, value_p) &&
           (!has_most || value_p->percent != value_p->most_percent || value_p->bytes <= value_p->most_bytes);
}

/* Past a bracket expression, whose "[" is at `text`; at the last byte of it, or of the text. */
static const char *skip_bracket(const char *text)
{
    text += text[1] == '^' ? 2 : 1;
    if (*text == ']')
        text++;
    for (; *text && *text != ']'; text++) {
        char kind = text[1];
        if (*text != '[' || (kind != ':' && kind != '.' && kind != '='))
            continue;
        for (text += 2; *text && !(*text == kind && text[1] == ']'); text++)
            ;
        text += *text ? 1 : 0;
        if (!*text)
            break;
    }
    return *text ? text : text - 1;
}

/* A piece of an expression, as the C library's compiler writes it out: how many parts it has, how many
 * operators in it make something optional, and whether it matches nothing at all. */
struct piece {
    uint64_t size, options;
    bool may_be_empty;
};

/* A group: what came before its latest piece in this branch, that piece, and whether another branch may be
 * empty. */
struct group {
    struct piece before, last;
    bool has_empty_branch;
};

static struct piece add_pieces(const struct piece *a, const struct piece *b)
{
    return (struct piece){a->size + b->size, a->options + b->options, a->may_be_empty && b->may_be_empty};
}

/* Of what may be empty: whether it is repeated, and whether without an end. */
struct empties {
    bool repeated, in_loop;
};

/* "+" and braces write out what stands before them, "*" and what has no upper end make a loop of it. *text_p
 * is moved to the last byte of the operator. */
static void repeat(const char **text_p, struct piece *piece, struct empties *empties)
{
    const char *text = *text_p;
    bool was_empty = piece->may_be_empty, is_open = *text == '*' || *text == '+';
    uint64_t low = *text == '+', high = 0, copies = 1 + low;
    if (*text == '{') {
        text++;
        if (isdigit((unsigned char)*text) && !read_digits(&text, &low))
            low = REGEX_SIZE_MAX;
        if (*text == ',' && isdigit((unsigned char)*++text)) {
            if (!read_digits(&text, &high))
                high = REGEX_SIZE_MAX;
        } else {
            is_open = *text == '}' && text[-1] == ',';
        }
        if (*text == '}')
            *text_p = text;
        high = high > low ? high : low;
        copies = high < REGEX_SIZE_MAX ? high + 1 : REGEX_SIZE_MAX + 1;
    }
    piece->size = (piece->size + 1) * copies;
    piece->options = (piece->options + 1) * copies;
    piece->may_be_empty |= low == 0;
    empties->repeated |= high && was_empty;
    empties->in_loop |= is_open && was_empty;
}

static void begin_branch(struct group *group)
{
    struct piece branch = add_pieces(&group->before, &group->last);
    group->has_empty_branch |= branch.may_be_empty;
    group->before = (struct piece){branch.size, branch.options, true};
    group->last = (struct piece){1, 0, true};
}

static void end_group(struct group *outer, const struct group *inner)
{
    struct piece branch = add_pieces(&inner->before, &inner->last);
    outer->before = add_pieces(&outer->before, &outer->last);
    outer->last =
        (struct piece){branch.size + 1, branch.options, branch.may_be_empty || inner->has_empty_branch};
}

/* "^" and its like match a place, so nothing of the text. */
static bool is_anchor(const char *text)
{
    return *text == '^' || *text == '$' || (*text == '\\' && text[1] && strchr("bB<>`'", text[1]));
}

/* A line of text could take all memory of the host, or all its time: repetitions of repetitions multiply when
 * they are compiled, and each optional part doubles the ways through an expression in which a loop may go
 * round without matching anything. Behind an anchor all that can be skipped is written out once more for each
 * place where it may be entered. What cannot be compiled at all is not noticed here. */
static bool regex_is_small(const char *text, struct group groups[REGEX_DEPTH_MAX + 1])
{
    const struct group empty = {.before = {0, 0, true}, .last = {0, 0, true}};
    uint64_t size = 0, options = 0; /* of the groups that are open */
    struct empties empties = {false, false};
    bool is_anchored = false;
    unsigned depth = 0;
    groups[0] = empty;
    for (; *text && size <= REGEX_SIZE_MAX; text++) {
        struct group *group = &groups[depth];
        if (*text == '(') {
            if (depth == REGEX_DEPTH_MAX)
                return false;
            groups[++depth] = empty;
        } else if (*text == ')' && depth) {
            end_group(&groups[--depth], group);
        } else if (*text == '|') {
            begin_branch(group);
        } else if (strchr("+{*?", *text)) {
            repeat(&text, &group->last, &empties);
        } else {
            group->before = add_pieces(&group->before, &group->last);
            group->last = (struct piece){1, 0, is_anchor(text)};
            is_anchored |= is_anchor(text);
            text = *text == '[' ? skip_bracket(text) : text + (*text == '\\' && text[1]);
        }
        size = options = 0;
        for (unsigned i = 0; i <= depth; i++) {
            struct piece all = add_pieces(&groups[i].before, &groups[i].last);
            size += all.size;
            options += all.options;
        }
    }
    return size <= REGEX_SIZE_MAX && (!empties.in_loop || options <= REGEX_OPTIONS_MAX) &&
           (!empties.repeated || !is_anchored || options <= REGEX_ANCHORED_MAX);
}

struct trial {
    const char *text;
    bool compiles;
    struct group groups[REGEX_DEPTH_MAX + 1];
};
_Static_assert(sizeof(struct trial) <= MS_AUX_STACK_BUFFER_BYTES, "it lies in a buffer");

static void try_regex(void *arg)
{
    struct trial *trial = arg;
    regex_t regex;
    trial->compiles = regex_is_small(trial->text, trial->groups) &&
                      regcomp(&regex, trial->text, REG_EXTENDED | REG_NOSUB) == 0;
    if (trial->compiles)
        regfree(&regex);
}

/* The C library's compiler takes as much stack as the expression is deep. */
static bool regex_compiles(const char *text)
{
    struct trial *trial = ms_aux_stack_take();
    bool compiles = false;
    if (trial) {
        trial->text = text;
        ms_aux_stack_call_anyway(try_regex, trial);
        compiles = trial->compiles;
    }
    ms_aux_stack_give(trial);
    return compiles;
}

static bool parse_by_type(const struct ms_option_info *info, const char *text,
                          struct ms_option_value *value_p)
{
    switch (info->type) {
    case MS_TYPE_ENUM:
        return parse_enum(info, text, value_p);
    case MS_TYPE_INT:
        return parse_int(info, text, value_p);
    case MS_TYPE_SIZE:
    case MS_TYPE_SHARE:
    case MS_TYPE_BYTES:
        return parse_size(info, text, value_p);
    case MS_TYPE_PAIR:
        return parse_pair(info, text, value_p);
    case MS_TYPE_REGEX:
        return !*text || regex_compiles(text);
    case MS_TYPE_STRING:
    case MS_TYPE_PATH:
        return true;
    }
    return false;
}

static void say_allowed(const struct ms_option_info *info, char *why, size_t why_bytes)
{
    switch (info->type) {
    case MS_TYPE_ENUM:
        snprintf(why, why_bytes, "one of %s", info->values);
        for (char *p = why; *p; p++) {
            if (*p == '|')
                *p = ',';
        }
        break;
    case MS_TYPE_INT:
        snprintf(why, why_bytes, "a number in %s", info->values);
        break;
    case MS_TYPE_SIZE:
        snprintf(why, why_bytes, MS_SIZE_ALLOWED ", or %% of the device%s%s",
                 *info->values ? ", or the word " : "", info->values);
        break;
    case MS_TYPE_SHARE:
        snprintf(why, why_bytes, MS_SIZE_ALLOWED ", or %% of live memory%s%s",
                 *info->values ? ", or the word " : "", info->values);
        break;
    case MS_TYPE_BYTES:
        snprintf(why, why_bytes, MS_SIZE_ALLOWED ", %.*s at least, or the word %s",
                 (int)(size_words(info) - 1 - info->values), info->values, size_words(info));
        break;
    case MS_TYPE_PAIR:
        snprintf(why, why_bytes, "one size or two, LEAST/MOST (24G/40G, 30%%/50%%), the first no larger");
        break;
    case MS_TYPE_REGEX:
        snprintf(why, why_bytes, "an extended regular expression, or is too large a one");
        break;
    case MS_TYPE_STRING:
    case MS_TYPE_PATH:
        snprintf(why, why_bytes, "shorter than %d characters", (int)MS_OPTION_TEXT_BYTES);
        break;
    }
}

bool ms_option_parse(const struct ms_option_info *info, const char *text, struct ms_option_value *value_p,
                     char *why, size_t why_bytes)
{
    size_t length = strnlen(text, MS_OPTION_TEXT_BYTES);
    struct ms_option_value *parsed = value_p;
    int64_t number = value_p->number;
    uint64_t bytes = value_p->bytes, most_bytes = value_p->most_bytes;
    bool percent = value_p->percent, most_percent = value_p->most_percent;
    if (length == MS_OPTION_TEXT_BYTES || !parse_by_type(info, text, parsed)) {
        parsed->number = number;
        parsed->bytes = bytes;
        parsed->percent = percent;
        parsed->most_bytes = most_bytes;
        parsed->most_percent = most_percent;
        say_allowed(info, why, why_bytes);
        return false;
    }
    memcpy(value_p->text, text, length + 1);
    return true;
}

enum ms_option_id ms_option_by_name(const char *name, size_t length, bool any_case)
{
    for (unsigned id = 0; id < MS_OPT_COUNT; id++) {
        const char *known = ms_option_info(id)->name;
        if (strlen(known) == length &&
            (any_case ? strncasecmp(known, name, length) : strncmp(known, name, length)) == 0)
            return id;
    }
    return MS_OPT_COUNT;
}

/* Levenshtein's distance, over one row. */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned row[NAME_BYTES_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned replace = diagonal + (toupper((unsigned char)a[i - 1]) != b[j - 1]);
            unsigned shorter = row[j] < row[j - 1] ? row[j] : row[j - 1];
            diagonal = row[j];
            row[j] = replace < shorter + 1 ? replace : shorter + 1;
        }
    }
    return row[b_length];
}

enum ms_option_id ms_option_nearest(const char *name, size_t length)
{
    enum ms_option_id nearest = MS_OPT_COUNT;
    unsigned least = 3; /* two slips of the finger are likely, three are another word */
    if (length > NAME_BYTES_MAX)
        return MS_OPT_COUNT;
    for (unsigned id = 0; id < MS_OPT_COUNT; id++) {
        const char *known = ms_option_info(id)->name;
        size_t known_length = strlen(known);
        unsigned d = distance(name, length, known, known_length);
        if (d < least && d < known_length) {
            least = d;
            nearest = id;
        }
    }
    return nearest;
}
