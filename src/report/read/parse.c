/* parse.c - the text of a report made into values; see parse.h.
 *
 * Floor 4, command line only. jansson's own parser takes a text byte by byte, which was four fifths of the
 * time that a report of 60 MB took to be read (docs/internals/bench.md); its values are made here instead,
 * as yajl tells what is in the text. */
#include "report/read/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "report/read/slabs.h"

enum {
    DEPTH_MAX = 2048,     /* as jansson's parser, whose writer calls itself for each level */
    SHARED_BITS = 12,     /* values that may come again: the latest of each hash */
    SHARED_TEXT_MAX = 31, /* longer texts seldom do */
    READ_BYTES = 1 << 16,
};

struct parser {
    json_t *root;
    json_t *open[DEPTH_MAX]; /* containers; borrowed from the one around them */
    size_t depth;
    char *key; /* of the member whose value comes next */
    size_t key_room;
    const char *fault; /* ours; NULL: yajl has one, or there is none */
    json_t *numbers[1 << SHARED_BITS], *texts[1 << SHARED_BITS];
};

static int parse_refuse(struct parser *parser, const char *fault)
{
    parser->fault = fault;
    return 0;
}

/* Takes the reference. Callbacks of yajl's answer 0 to end it. */
static int parse_add(struct parser *parser, json_t *value)
{
    json_t *around = parser->depth ? parser->open[parser->depth - 1] : NULL;
    size_t members;

    if (!value)
        return parse_refuse(parser, "no UTF-8, or no memory");
    if (!around) {
        parser->root = value;
        return 1;
    }
    if (json_is_array(around))
        return json_array_append_new(around, value) == 0 ? 1 : parse_refuse(parser, "no memory");
    members = json_object_size(around);
    if (json_object_set_new(around, parser->key, value) < 0)
        return parse_refuse(parser, "a name is no UTF-8, or no memory");
    return json_object_size(around) > members ? 1
                                              : parse_refuse(parser, "a name is there twice in one object");
}

static int add_container(struct parser *parser, json_t *value)
{
    if (parser->depth == DEPTH_MAX) {
        json_decref(value);
        return parse_refuse(parser, "more than 2048 levels, one in the other");
    }
    if (!parse_add(parser, value))
        return 0;
    parser->open[parser->depth++] = value;
    return 1;
}

static int on_null(void *arg)
{
    return parse_add(arg, json_null());
}

static int on_boolean(void *arg, int value)
{
    return parse_add(arg, json_boolean(value));
}

static json_t *shared_integer(struct parser *parser, json_int_t number)
{
    json_t **kept = &parser->numbers[(uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SHARED_BITS)];

    if (!*kept || json_integer_value(*kept) != number) {
        json_decref(*kept);
        *kept = json_integer(number);
    }
    return json_incref(*kept);
}

/* Digits as yajl found them, so there is at least one; false if that is too large. */
static bool read_integer(const char *digits, size_t count, json_int_t *number_p)
{
    bool negative = *digits == '-';

    *number_p = 0;
    for (size_t i = negative; i < count; i++) {
        int digit = digits[i] - '0';

        if (__builtin_mul_overflow(*number_p, 10, number_p) ||
            __builtin_add_overflow(*number_p, negative ? -digit : digit, number_p))
            return false;
    }
    return true;
}

static bool is_integer(const char *digits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (digits[i] == '.' || digits[i] == 'e' || digits[i] == 'E')
            return false;
    return true;
}

static int on_number(void *arg, const char *digits, size_t count)
{
    struct parser *parser = arg;
    json_int_t number;
    json_t *real;

    if (is_integer(digits, count)) {
        if (!read_integer(digits, count, &number))
            return parse_refuse(parser, "an integer is beyond 64 bits");
        return parse_add(parser, shared_integer(parser, number));
    }
    real = json_loadb(digits, count, JSON_DECODE_ANY, NULL); /* whatever the locale */
    return real ? parse_add(parser, real) : parse_refuse(parser, "a number is too large");
}

static json_t *shared_text(struct parser *parser, const char *text, size_t bytes)
{
    uint32_t hash = (uint32_t)bytes;
    json_t **kept;

    for (size_t i = 0; i < bytes; i++)
        hash = hash * 31 + (unsigned char)text[i];
    kept = &parser->texts[hash * UINT32_C(0x9e3779b1) >> (32 - SHARED_BITS)];
    if (!*kept || json_string_length(*kept) != bytes || memcmp(json_string_value(*kept), text, bytes) != 0) {
        json_decref(*kept);
        *kept = json_stringn(text, bytes);
    }
    return json_incref(*kept);
}

static int on_text(void *arg, const unsigned char *text, size_t bytes)
{
    struct parser *parser = arg;

    if (memchr(text, 0, bytes))
        return parse_refuse(parser, "a text has a character 0");
    if (bytes <= SHARED_TEXT_MAX)
        return parse_add(parser, shared_text(parser, (const char *)text, bytes));
    return parse_add(parser, json_stringn((const char *)text, bytes));
}

static int on_key(void *arg, const unsigned char *key, size_t bytes)
{
    struct parser *parser = arg;

    if (memchr(key, 0, bytes))
        return parse_refuse(parser, "a name has a character 0");
    if (bytes >= parser->key_room) {
        char *more = realloc(parser->key, 2 * bytes + 64);

        if (!more)
            return parse_refuse(parser, "no memory");
        parser->key = more;
        parser->key_room = 2 * bytes + 64;
    }
    memcpy(parser->key, key, bytes);
    parser->key[bytes] = '\0';
    return 1;
}

static int on_object(void *arg)
{
    return add_container(arg, json_object());
}

static int on_array(void *arg)
{
    return add_container(arg, json_array());
}

static int on_end(void *arg)
{
    ((struct parser *)arg)->depth--;
    return 1;
}

/* The place of the text: lines and bytes before what yajl has now. */
struct place {
    size_t line, column;
};

static void parse_go_on(struct place *place, const char *text, size_t bytes)
{
    const char *line = text, *end = text + bytes, *next;

    while ((next = memchr(line, '\n', (size_t)(end - line))) != NULL) {
        place->line++;
        place->column = 1;
        line = next + 1;
    }
    place->column += (size_t)(end - line);
}

static void tell_fault(struct ms_parse_fault *fault, struct parser *parser, yajl_handle yajl,
                       const struct place *place)
{
    unsigned char *told = parser->fault ? NULL : yajl_get_error(yajl, 0, NULL, 0);
    const char *text = parser->fault ? parser->fault : told ? (const char *)told : "no memory";
    const char *kind = strstr(text, "error: "); /* "parse error: ", "lexical error: " */

    fault->line = place->line;
    fault->column = place->column;
    snprintf(fault->text, sizeof(fault->text), "%s", kind ? kind + 7 : text);
    fault->text[strcspn(fault->text, "\n")] = '\0';
    if (told)
        yajl_free_error(yajl, told);
}

/* A function that yields the next part of the text: returns how many bytes, 0 at the end, -1 with errno. */
typedef ssize_t more_fn(void *arg, const char **text_p);

/* 0, or -1 with `fault` filled in. */
static int feed(struct parser *parser, yajl_handle yajl, more_fn *more, void *arg,
                struct ms_parse_fault *fault)
{
    struct place place = {1, 1};
    const char *text;
    ssize_t bytes;

    while ((bytes = more(arg, &text)) > 0) {
        if (yajl_parse(yajl, (const unsigned char *)text, (size_t)bytes) != yajl_status_ok) {
            size_t taken = yajl_get_bytes_consumed(yajl);

            parse_go_on(&place, text, taken < (size_t)bytes ? taken : (size_t)bytes);
            tell_fault(fault, parser, yajl, &place);
            return -1;
        }
        parse_go_on(&place, text, (size_t)bytes);
    }
    if (bytes < 0) {
        *fault = (struct ms_parse_fault){0};
        snprintf(fault->text, sizeof(fault->text), "%s", strerror(errno));
        return -1;
    }
    /* A text that was begun behind the end and has none is found out by a quote that ends it. */
    if (yajl_complete_parse(yajl) == yajl_status_ok &&
        yajl_parse(yajl, (const unsigned char *)"\"", 1) == yajl_status_ok)
        return 0;
    tell_fault(fault, parser, yajl, &place);
    return -1;
}

static void forget_shared(struct parser *parser)
{
    for (size_t i = 0; i < (size_t)1 << SHARED_BITS; i++) {
        json_decref(parser->numbers[i]);
        json_decref(parser->texts[i]);
    }
}

static json_t *parse(more_fn *more, void *arg, struct ms_parse_fault *fault)
{
    static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_boolean,
        .yajl_number = on_number,
        .yajl_string = on_text,
        .yajl_start_map = on_object,
        .yajl_map_key = on_key,
        .yajl_end_map = on_end,
        .yajl_start_array = on_array,
        .yajl_end_array = on_end,
    };
    struct parser *parser = calloc(1, sizeof(*parser));
    yajl_handle yajl = parser ? yajl_alloc(&callbacks, NULL, parser) : NULL;
    json_t *root = NULL;

    *fault = (struct ms_parse_fault){.text = "no memory"};
    ms_slabs_begin();
    if (yajl) {
        yajl_config(yajl, yajl_dont_validate_strings, 1); /* jansson does, and by the letter */
        if (feed(parser, yajl, more, arg, fault) == 0)
            root = parser->root;
        else
            json_decref(parser->root);
        forget_shared(parser);
        yajl_free(yajl);
        free(parser->key);
    }
    ms_slabs_end();
    free(parser);
    return root;
}

struct descriptor {
    int fd;
    char text[READ_BYTES];
};

static ssize_t more_of_fd(void *arg, const char **text_p)
{
    struct descriptor *descriptor = arg;
    ssize_t bytes;

    do
        bytes = read(descriptor->fd, descriptor->text, sizeof(descriptor->text));
    while (bytes < 0 && errno == EINTR);
    *text_p = descriptor->text;
    return bytes;
}

json_t *ms_parse_fd(int fd, struct ms_parse_fault *fault)
{
    struct descriptor descriptor;

    descriptor.fd = fd;
    return parse(more_of_fd, &descriptor, fault);
}

struct whole {
    const char *text;
    size_t bytes;
};

static ssize_t more_of_text(void *arg, const char **text_p)
{
    struct whole *whole = arg;
    size_t bytes = whole->bytes < (size_t)1 << 30 ? whole->bytes : (size_t)1 << 30;

    *text_p = whole->text;
    whole->text += bytes;
    whole->bytes -= bytes;
    return (ssize_t)bytes;
}

json_t *ms_parse_text(const char *text, size_t bytes, struct ms_parse_fault *fault)
{
    struct whole whole = {text, bytes};

    return parse(more_of_text, &whole, fault);
}
