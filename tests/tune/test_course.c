/* test_course.c - a trace read as a course: blocks and the pieces of them, streams and their devices, ids
 * that come again, and what is no trace. */
#include "cli/tune/course.h"

#include <unistd.h>

#include "record/live/ledger.h"
#include "tests/tap.h"

static char path[4096];

static const char head[] = "# memshim 0.9.0, run 18a9: train, process 7\n";

/* A text without a first line gets that of a trace. */
static int read_text(const char *text, bool inner, struct ms_course *course, char *error)
{
    FILE *file = fopen(path, "w");

    if (!file || (*text && *text != '#' && fputs(head, file) < 0) || fputs(text, file) < 0 ||
        fclose(file) < 0)
        bail("the trace cannot be written");
    return ms_course_read(path, inner, course, error, 200);
}

static const char whole[] = "# memshim 0.9.0, run 18a9: train, process 7\n"
                            "# columns: microseconds op id bytes stream\n"
                            "1 a 1 100 0 5 0x7f0000000000\n"
                            "2 A 1 60 0 9 0x7f0000000000\n"
                            "# stream 1: device 0, handle 0x10\n"
                            "# stream 2: hip device 1, handle 0x0\n"
                            "3 a 2 300 1 - 0x7f0000001000\n"
                            "4 F 1 60 0\n"
                            "5 f 1 100 0\n"
                            "6 a 1 0 2 6 0x0\n"
                            "6 f 2 300 1\n"
                            "7 a 9";

static void test_blocks(void)
{
    struct ms_course course;
    char error[200] = "";
    const struct ms_course_event *e;

    ok(read_text(whole, false, &course, error) == 0, "a trace is read: %s", error);
    e = course.events;
    ok(course.count == 5 && course.block_count == 3 && course.other_count == 2,
       "its events are those of blocks, up to a line that is not whole");
    ok(e[0].ns == 1000 && e[0].bytes == 100 && e[0].site == 5 && e[0].kind == MS_KIND_DEVICE,
       "an allocation");
    ok(e[1].stream == 1 && e[1].kind == MS_KIND_ASYNC && e[1].site == MS_COURSE_NO_SITE && e[1].block == 1,
       "one of a stream, of no site");
    ok(e[2].bytes == 0 && e[2].block == 0 && e[4].block == 1 && e[4].kind == MS_KIND_ASYNC,
       "frees name the blocks that they end");
    ok(e[3].block == 2 && e[3].bytes == 1,
       "an id that comes again is another block; one of no bytes has one");
    ok(course.device_count == 2 && e[3].device == 1 && !strcmp(course.devices[1].api, "hip") &&
           course.devices[1].index == 1 && e[3].kind == MS_KIND_DEVICE,
       "another device has a stream that orders nothing");
    ok(course.live_peak == 400 && course.live_peak_event == 1, "the peak, and the event that reached it");
    ok(course.title && !strcmp(course.title, "train, process 7"), "its title");
    ms_course_close(&course);
}

static void test_pieces(void)
{
    struct ms_course course;
    char error[200] = "";

    ok(read_text(whole, true, &course, error) == 0 && course.count == 2 && course.inner &&
           course.other_count == 5 && course.events[0].bytes == 60 && course.events[0].kind == MS_KIND_INNER,
       "or those of the pieces of blocks: %s", error);
    ms_course_close(&course);
}

static void test_phases(void)
{
    static const char phases[] = "# memshim 0.9.0, run 18a9: train, process 7\n"
                                 "# thread 70\n"
                                 "1 a 1 100 0 5 0x7f0000000000 device\n"
                                 "# phase 3: nvtx - a%20step\n"
                                 "# begin 2 3 11 1\n"
                                 "# begin 2 3 12 0\n"
                                 "# thread 71\n"
                                 "3 f 1 100 0\n"
                                 "# end 4 11\n"
                                 "# mark 4 3\n"
                                 "5 a 2 100 0 5 0x7f0000000000 managed\n";
    struct ms_course course;
    char error[200] = "";

    ok(read_text(phases, false, &course, error) == 0 && course.phase_count == 2, "phases are read: %s",
       error);
    ok(!strcmp(course.phases[0].name, "a step") && course.phases[0].begin == 1 && course.phases[0].end == 2,
       "a phase is what happens in it");
    ok(course.phases[1].begin == 1 && course.phases[1].end == 3, "one that does not end lasts to the end");
    ok(course.events[2].kind == MS_KIND_MANAGED && course.events[0].thread != course.events[1].thread,
       "kinds and threads are those of the trace");
    ms_course_close(&course);
}

/* Segments with pieces give way to these; a block beside them stays, and its free. */
static void test_uncached(void)
{
    static const char both[] = "1 a 1 1000 0 5 0x7f0000000000\n"
                               "2 A 1 600 0 9 0x7f0000000000\n"
                               "3 a 2 300 0 7 0x7f0000001000\n"
                               "4 A 2 400 0 9 0x7f0000000258\n"
                               "5 F 1 600 0\n6 f 2 300 0\n7 F 2 400 0\n8 f 1 1000 0\n"
                               "9 a 3 500 0 5 0x7f0000000000\n10 f 3 500 0\n";
    struct ms_course course;
    char error[200] = "", astray[1000];
    const struct ms_course_event *e;

    ok(read_text(both, false, &course, error) == 0, "two layers: %s", error);
    ms_course_close(&course);
    ok(ms_course_read_uncached(path, &course, error, sizeof(error)) == 0, "as if nothing were cached: %s",
       error);
    e = course.events;
    ok(course.count == 8 && course.block_count == 4 && course.live_peak == 1300 && e[0].bytes == 600 &&
           e[0].kind == MS_KIND_DEVICE && e[0].site == 9 && e[1].bytes == 300 && e[2].bytes == 400 &&
           e[4].block == 1 && e[6].bytes == 500,
       "pieces are blocks, and segments are left out: %zu", course.count);
    ms_course_close(&course);
    snprintf(astray, sizeof(astray), "%s11 A 3 10 0 9 0x7f0000000000\n", both);
    if (read_text(astray, false, &course, error) < 0)
        bail("%s", error);
    ms_course_close(&course);
    ok(ms_course_read_uncached(path, &course, error, sizeof(error)) == 1,
       "not where a piece lies in no block");
    if (read_text("1 a 1 2097152 0 5 0x0\n2 A 1 600 0 9 0x7f0000000000\n3 F 1 600 0\n", false, &course,
                  error) < 0)
        bail("%s", error);
    ms_course_close(&course);
    ok(ms_course_read_uncached(path, &course, error, sizeof(error)) == 0 && course.count == 2 &&
           course.events[0].bytes == 600,
       "but for one in memory that was mapped, which is the allocator's");
    ms_course_close(&course);
    if (read_text("1 a 1 10 0 5 0x7f0000000000\n", false, &course, error) < 0)
        bail("%s", error);
    ms_course_close(&course);
    ok(ms_course_read_uncached(path, &course, error, sizeof(error)) == 1, "nor where there are none");
}

static void test_refused(void)
{
    static const char *const texts[] = {
        "",
        "1 a 1 10\n",
        "1 f 1 10 0\n",
        "1 a 1 10 0\n2 a 1 10 0\n",
        "2 a 1 10 0\n1 f 1 10 0\n",
        "1 a 1 10 0\n2 f 1 10 0\n2 f 1 10 0\n",
        "1 a 1 10 1024\n",
        "# memshim 0.9.0: x, process 7\n# stream 2: device -5, handle 0x1\n1 a 1 10 2\n",
        "# stream 1: device 0, handle 0x1\n1 a 1 10 1\n",
        "x\n",
        "1 a 1 9223372036854775807 0\n1 a 2 9223372036854775807 0\n",
    };
    struct ms_course course;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char error[200] = "";

        ok(read_text(texts[i], false, &course, error) < 0 && strstr(error, path) && !strchr(error, '\n'),
           "refused in one line that names the file: %s", error);
    }
    snprintf(path, sizeof(path), "%s/none", getenv("TEST_TMP"));
    {
        char error[200] = "";

        ok(ms_course_read(path, false, &course, error, sizeof(error)) < 0 && strstr(error, "cannot read"),
           "and a file that is not there: %s", error);
    }
}

/* Many ids, far apart and freed in another order: the table grows and forgets those that are over. */
static void test_many(void)
{
    struct ms_course course;
    char error[200] = "";
    FILE *file = fopen(path, "w");

    if (!file)
        bail("no trace");
    fputs(head, file);
    for (unsigned i = 0; i < 30000; i++) {
        fprintf(file, "%u a %llu %u 0\n", i, 1 + 1000003ull * i, i + 1);
        if (i >= 100)
            fprintf(file, "%u f %llu 1 0\n", i, 1 + 1000003ull * (i - 100));
    }
    fclose(file);
    ok(ms_course_read(path, false, &course, error, sizeof(error)) == 0 && course.block_count == 30000 &&
           course.count == 59900 && course.events[59899].block == 29899,
       "ids may be any numbers: %s", error);
    ms_course_close(&course);
}

int main(void)
{
    plan(0);
    snprintf(path, sizeof(path), "%s/course.trace", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
    test_blocks();
    test_pieces();
    test_many();
    test_uncached();
    test_phases();
    test_refused();
    return done();
}
