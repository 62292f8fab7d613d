/* test_parse.c - texts of reports: what is taken is what jansson's own parser makes of it, also where the
 * text comes in pieces of any length; what is refused is told with its place. */
#include "report/read/parse.h"

#include <unistd.h>

#include "tests/tap.h"

static char *repeated(const char *part, size_t times)
{
    char *text = calloc(times, strlen(part) + 1);

    for (size_t i = 0; text && i < times; i++)
        strcat(text, part);
    return text;
}

/* In pieces of so many bytes, as a pipe may give it. */
static json_t *parse_in_pieces(const char *text, size_t bytes, size_t piece)
{
    struct ms_parse_fault fault;
    int ends[2];
    json_t *value;

    if (pipe(ends) < 0)
        bail("no pipe");
    if (fork() == 0) {
        close(ends[0]);
        for (size_t at = 0; at < bytes; at += piece) {
            size_t here = bytes - at < piece ? bytes - at : piece;

            if (write(ends[1], text + at, here) != (ssize_t)here)
                _exit(1);
            usleep(200);
        }
        _exit(0);
    }
    close(ends[1]);
    value = ms_parse_fd(ends[0], &fault);
    close(ends[0]);
    return value;
}

static void same(const char *text)
{
    struct ms_parse_fault fault;
    json_t *want = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    json_t *got = ms_parse_text(text, strlen(text), &fault);

    ok(want && got && json_equal(want, got), "taken as jansson takes it: %.60s", text);
    json_decref(want);
    json_decref(got);
}

static void refused_at(const char *text, size_t bytes, size_t line, size_t column, const char *why)
{
    struct ms_parse_fault fault = {0};
    json_t *got = ms_parse_text(text, bytes, &fault);

    if (!ok(!got && fault.line == line && fault.column == column && strstr(fault.text, why), "refused: %.40s",
            text))
        diag("line %zu, column %zu: %s", fault.line, fault.column, fault.text);
    json_decref(got);
}

static void refused(const char *text, size_t line, size_t column, const char *why)
{
    refused_at(text, strlen(text), line, column, why);
}

static const char *const good[] = {
    "{}",
    "[]",
    " [ 1 , -1 , 0 , -0 , 9223372036854775807 , -9223372036854775808 ] ",
    "[0.5, -1e3, 1E-400, 123456789012345678901234567890.0]",
    "[true, false, null, \"\", \"a\", \"a\", 7, 7]",
    "{\"a\": {\"a\": {\"b\": []}}, \"b\": [{}, {\"a\": 1}, {\"a\": 1}]}",
    "\"\\u00e9\\ud83d\\ude00\\n\\t\\\\\\/\\\"\"",
    "\"\xc3\xa9\xf0\x9f\x98\x80 and more than thirty-one bytes of text\"",
    "{\"\": 1, \"\\u0061\": 2}",
    "3",
};

static void faults(void)
{
    char *deep = repeated("[", 2049);

    refused("", 1, 1, "EOF");
    refused("{\"a\": 1", 1, 8, "EOF");
    refused("{\n\"a\": 1,\n  x}", 3, 4, "invalid");
    refused("[1 2]", 1, 5, "");
    refused("[1,]", 1, 5, "");
    refused("{} {}", 1, 5, "trailing");
    refused("{\"a\": 1,\n \"a\": 2}", 2, 8, "twice");
    refused("[9223372036854775808]", 1, 21, "64 bits");
    refused("[-9223372036854775809]", 1, 22, "64 bits");
    refused("[1e999]", 1, 7, "too large");
    refused("[NaN]", 1, 3, "");
    refused("[\"\\u0000\"]", 1, 10, "character 0");
    refused("{\"\\u0000\": 1}", 1, 10, "character 0");
    refused("[\"\xc0\x80\"]", 1, 6, "UTF-8");     /* overlong */
    refused("[\"\xed\xa0\x80\"]", 1, 7, "UTF-8"); /* half of a pair */
    refused("[\"\\udc00\"]", 1, 10, "UTF-8");     /* the same, escaped */
    refused("{\"\xff\": 1}", 1, 8, "UTF-8");
    refused("[\"\x01\"]", 1, 3, "");
    refused("/* */ {}", 1, 1, "");
    refused_at("[1]\0", 4, 1, 5, "");
    refused_at("[12\0]", 5, 1, 5, "invalid");
    refused(deep, 1, 2050, "2048 levels");
    free(deep);
}

static void depth(void)
{
    char *text = calloc(1, 2 * 2048 + 1);

    memset(text, '[', 2048);
    memset(text + 2048, ']', 2048);
    same(text);
    free(text);
}

static void pieces(void)
{
    static const char text[] =
        "{\"k\\u00e9y\": [1234567, -5.25e1, true, null, \"\xc3\xa9\\ud83d\\ude00x\", \"\\\\\"], \"b\": {}}";
    json_t *want = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

    for (size_t piece = 1; piece <= 8; piece++) {
        json_t *got = parse_in_pieces(text, sizeof(text) - 1, piece);

        ok(want && got && json_equal(want, got), "the same in pieces of %zu", piece);
        json_decref(got);
    }
    for (size_t bytes = 0; bytes < sizeof(text) - 1; bytes++) {
        struct ms_parse_fault fault;
        json_t *got = ms_parse_text(text, bytes, &fault);

        if (got) {
            ok(false, "cut after %zu bytes it is taken", bytes);
            json_decref(got);
        }
    }
    json_decref(want);
}

static void unreadable(void)
{
    struct ms_parse_fault fault = {.line = 7};
    json_t *got = ms_parse_fd(-1, &fault);

    ok(!got && !fault.line, "what cannot be read has no line");
    is_str(fault.text, "Bad file descriptor", "and says why");
}

int main(void)
{
    plan(0);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        same(good[i]);
    depth();
    faults();
    pieces();
    unreadable();
    return done();
}
