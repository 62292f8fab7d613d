/* test_text.c - how sizes and times are spelled, and that no report makes the reader run away. */
#include "report/text/text.h"

#include <limits.h>
#include <unistd.h>

#include "tests/tap.h"

static const struct {
    json_int_t bytes;
    const char *text;
} sizes[] =
    {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {1024 * 1024 - 1, "1.0 MiB"},
        {1024 * 1024, "1.0 MiB"},
        {1047000, "1022.5 KiB"},
        {(json_int_t)3 << 29, "1.50 GiB"},
        {(json_int_t)1 << 50, "1.00 PiB"},
        {INT64_MAX, "8.00 EiB"},
        {((json_int_t)1 << 30) + ((json_int_t)40 << 20), "1.04 GiB"},
        {(json_int_t)1023 << 30, "1023.0 GiB"},
        {-2048, "-2.0 KiB"},
        {INT64_MIN, "-8.00 EiB"},
},
  times[] = {
      {0, "0 ns"},
      {999, "999 ns"},
      {1000, "1.0 us"},
      {999999, "1.0 ms"},
      {1500000, "1.5 ms"},
      {3200000000, "3.2 s"},
      {59990000000, "60.0 s"},
      {(json_int_t)7500 * 1000000000, "2 h 05 min"},
};

static struct ms_report parse(const char *text)
{
    struct ms_report report = {.root = json_loads(text, 0, NULL)};

    report.stacks = ms_report_array(report.root, "stacks");
    report.frames = ms_report_array(report.root, "frames");
    report.modules = ms_report_array(report.root, "modules");
    report.sites = ms_report_array(report.root, "sites");
    return report;
}

static void path_is(const char *path, const char *shown)
{
    char text[PATH_MAX] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    ms_text_put_path(out, path);
    fclose(out);
    is_str(text, shown, "how %s is shown", path);
}

/* Beneath the current directory without it, and nothing else. */
static void path_shown(void)
{
    char here[PATH_MAX], path[PATH_MAX + 16];

    if (!getcwd(here, sizeof here))
        bail("no current directory");
    snprintf(path, sizeof path, "%s/a/b.c", here);
    path_is(path, "a/b.c");
    snprintf(path, sizeof path, "%sx/b.c", here);
    path_is(path, path);
    path_is(here, here);
    snprintf(path, sizeof path, "%s/", here);
    path_is(path, path);
    path_is("b.c", "b.c");
    path_is("/\n", "/?");
}

static void frame_is(const char *frame, const char *shown)
{
    struct ms_report none = {0};
    json_t *row = json_loads(frame, 0, NULL);
    char text[256] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    ms_text_frame(out, &none, row);
    fclose(out);
    is_str(text, shown, "how %s is shown", frame);
    json_decref(row);
}

static void frames_shown(void)
{
    frame_is("{\"kind\": \"native\", \"function\": \"f\", \"file\": \"/a.c\", \"line\": 7}", "f at /a.c:7");
    frame_is("{\"kind\": \"python\", \"function\": \"C.f\", \"file\": \"/a.py\", \"line\": 7}",
             "C.f (/a.py:7)");
    frame_is("{\"kind\": \"python\", \"function\": \"f\", \"file\": \"/a.py\"}", "f (/a.py)");
    frame_is("{\"kind\": \"python\", \"code\": 3}", "? (Python)");
    frame_is("{\"kind\": \"mark\", \"mark\": \"thread\", \"name\": \"pt\\u001b_0\"}", "[thread pt?_0]");
    frame_is("{\"kind\": \"mark\", \"mark\": \"inferred\"}",
             "[no Python in this thread: the process's latest]");
    frame_is("{\"kind\": \"mark\"}", "[?]");
}

static void cut_is(const char *name, size_t columns, const char *shown, size_t used)
{
    char text[256] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    size_t said = ms_text_cut(out, name, columns);

    fclose(out);
    is_str(text, shown, "%s in %zu columns", name, columns);
    is_u64(said, used, "it takes %zu", used);
}

/* Columns of a terminal, not characters. */
static void columns_counted(void)
{
    cut_is("abcdefgh", 8, "abcdefgh", 8);
    cut_is("abcdefgh", 7, "abcd...", 7);
    cut_is("\u8a13\u7df4\u8a13\u7df4", 8, "\u8a13\u7df4\u8a13\u7df4", 8);
    cut_is("\u8a13\u7df4\u8a13\u7df4", 7, "\u8a13\u7df4...", 7);
    cut_is("\u8a13\u7df4\u8a13\u7df4", 6, "\u8a13...", 5);
    cut_is("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301", 3);
    cut_is("\U0001f600b\x1b", 4, "\U0001f600b?", 4);
}

int main(void)
{
    struct ms_report report =
        parse("{\"stacks\": [[0, -1], [1, 0], [3, 0], [2, 1], [0, 7], [4, 0], [-1, 0], \"x\", [0, 1]],"
              " \"frames\": [{\"function\": \"a\"}, {\"function\": \"b\"}],"
              " \"modules\": [{\"id\": 5, \"path\": \"five\"}, {\"id\": 1, \"path\": \"one\"}]}");
    json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t i;

    plan(0);
    path_shown();
    frames_shown();
    columns_counted();
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ok(!strcmp(ms_text_size(sizes[i].bytes).text, sizes[i].text), "%lld is %s, said %s",
           (long long)sizes[i].bytes, sizes[i].text, ms_text_size(sizes[i].bytes).text);
    for (i = 0; i < sizeof times / sizeof *times; i++)
        ok(!strcmp(ms_text_duration(times[i].bytes).text, times[i].text), "%lld ns is %s, said %s",
           (long long)times[i].bytes, times[i].text, ms_text_duration(times[i].bytes).text);

    ok(ms_report_stack(&report, 0, frames, 16) == 0, "stack 0 is no stack");
    ok(ms_report_stack(&report, 1, frames, MS_REPORT_DEPTH_MAX) == MS_REPORT_DEPTH_MAX,
       "a stack that is its own parent is cut");
    ok(ms_report_stack(&report, 2, frames, 16) == 16, "so is a ring of two");
    ok(ms_report_stack(&report, 4, frames, 16) == 0, "a frame out of range names nothing");
    ok(ms_report_stack(&report, 5, frames, 16) == 1, "a stack is read as far as it makes sense");
    ok(ms_report_stack(&report, 6, frames, 16) == 1, "a parent below zero ends it");
    ok(ms_report_stack(&report, 7, frames, 16) == 0, "a node that is no pair names nothing");
    ok(ms_report_stack(&report, 99, frames, 16) == 0 && ms_report_stack(&report, -5, frames, 16) == 0,
       "nor does an id out of range");
    ok(ms_report_stack(&report, 8, frames, 16) == 1 && !strcmp(ms_report_text(frames[0], "function"), "b"),
       "a good one is read");
    ok(!strcmp(ms_report_text(ms_report_module(&report, 1), "path"), "one"), "a row is found by its id");
    ok(!strcmp(ms_report_text(ms_report_module(&report, 5), "path"), "five"), "wherever it stands");
    ok(!ms_report_module(&report, 0) && !ms_report_module(&report, -1), "and not by its place");
    ms_report_close(&report);
    return done();
}
