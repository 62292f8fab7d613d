/* test_replay.c - a course replayed: what the simulated driver counts is what the course means, each kind by
 * the driver's own call, and the first event is told for which there is no memory. */
#include "cli/cli.h"
#include "cli/tune/replay_run.h"

#include <unistd.h>

#include "record/live/ledger.h"
#include "report/read/read.h"
#include "tests/tap.h"

#define MIB (UINT64_C(1) << 20)

/* The table of verbs belongs to the command's own main. */
const char ms_cli_prefix[] = "memshim ";
const struct ms_verb ms_verbs[] = {{NULL, NULL, NULL, NULL}};
const struct ms_flag ms_flags[] = {{NULL, 0, NULL, NULL, NULL, NULL}};
const struct ms_verb *ms_verb_find(const char *name)
{
    (void)name;
    return NULL;
}

static struct ms_course_event events[16];
static struct ms_course course = {.events = events, .device_count = 2};

static void add(uint64_t bytes, uint32_t block, uint8_t kind, uint16_t stream, uint8_t device)
{
    events[course.count++] = (struct ms_course_event){
        .bytes = bytes, .block = block, .kind = kind, .stream = stream, .device = device};
    if (bytes)
        course.block_count++;
}

static struct ms_replay_order order_of(const struct ms_replay *replay, const char *settings)
{
    return (struct ms_replay_order){replay, settings, 4096 * MIB, 0, course.count, SIZE_MAX};
}

static void test_kinds(void)
{
    struct ms_replay replay;
    struct ms_replay_order orders[3];
    struct ms_replay_result results[3];

    course.count = course.block_count = 0;
    course.streams[3].ordered = true;
    add(10 * MIB, 0, MS_KIND_DEVICE, 0, 0);
    add(6 * MIB, 1, MS_KIND_MANAGED, 0, 0);
    add(20 * MIB, 2, MS_KIND_ASYNC, 3, 0);
    add(4 * MIB, 3, MS_KIND_ARRAY, 0, 0);
    add(3 * MIB, 4, MS_KIND_HANDLE, 0, 0);
    add(20 * MIB, 5, MS_KIND_DEVICE, 0, 1);
    for (uint32_t block = 0; block < 6; block++)
        add(0, block, events[block].kind, events[block].stream, events[block].device);
    ok(ms_replay_open(&course, &replay) == 0, "a course is laid out");
    for (unsigned i = 0; i < 3; i++)
        orders[i] = order_of(&replay, i == 0 ? "" : "MEMSHIM_MODE=track");
    orders[2].warm = 6;
    if (ms_replay_all(orders, results, 3, NULL, NULL) < 0)
        bail("nothing can be replayed");
    ok(results[1].completed && results[1].refused == course.count, "all kinds are asked for and given back");
    ok(results[1].peak == (10 + 32 + 4 + 4) * MIB && results[1].device == 0,
       "natively each takes its granules, a pool its unit, and managed memory none of the device: %" PRIu64,
       results[1].peak / MIB);
    ok(results[1].sums.calls == 10 && results[1].sums.waits == 3,
       "the driver's calls are those of the course, but for arrays: %" PRIu64 " and %" PRIu64,
       results[1].sums.calls, results[1].sums.waits);
    ok(results[2].steady.calls == 5 && results[2].steady.waits == 3 && results[1].steady.calls == 0,
       "those from an event on are told apart");
    ok(results[0].completed && results[0].sums.waits < 3, "the pool does it with fewer waits");
    ms_replay_close(&replay);
}

static void test_refused(void)
{
    struct ms_replay replay;
    struct ms_replay_order orders[4];
    struct ms_replay_result results[4];

    course.count = course.block_count = 0;
    course.device_count = 1;
    for (uint32_t block = 0; block < 6; block++)
        add(100 * MIB, block, MS_KIND_DEVICE, 0, 0);
    add(0, 0, MS_KIND_DEVICE, 0, 0);
    add(90 * MIB, 6, MS_KIND_DEVICE, 0, 0);
    if (ms_replay_open(&course, &replay) < 0)
        bail("no course");
    for (unsigned i = 0; i < 4; i++)
        orders[i] = order_of(&replay, "");
    orders[0].device_bytes = 600 * MIB;
    orders[1].device_bytes = 598 * MIB;
    orders[2].first = 7;
    orders[3].first = 4;
    orders[3].device_bytes = 300 * MIB;
    if (ms_replay_all(orders, results, 4, NULL, NULL) < 0)
        bail("nothing can be replayed");
    ok(results[0].completed && results[0].peak == 600 * MIB, "it completes on a device of what was live");
    ok(!results[1].completed && results[1].refused == 5,
       "and a granule less refuses the event that it lacks for");
    ok(results[2].completed && results[2].peak == 590 * MIB && results[2].sums.calls <= 7,
       "a part begins with what was live before it, and nothing else");
    ok(!results[3].completed && results[3].refused == 3,
       "where there is no room for that, its event is told");
    ms_replay_close(&replay);
}

/* How many threads the live blocks of a report are of. */
static size_t threads_of(const char *path)
{
    struct ms_report report;
    json_int_t seen[8] = {0};
    json_t *segment, *block;
    char error[300];
    size_t count = 0, i, j, k;

    if (ms_report_read(path, &report, error, sizeof(error)) < 0)
        bail("%s", error);
    json_array_foreach (ms_report_array(report.root, "segments"), i, segment)
        json_array_foreach (ms_report_array(segment, "blocks"), j, block) {
            for (k = 0; k < count && seen[k] != ms_report_int(block, "thread"); k++)
                ;
            if (k == count && k < 8 && ms_report_int(block, "thread"))
                seen[count++] = ms_report_int(block, "thread");
        }
    ms_report_close(&report);
    return count;
}

/* Three threads in turns, whose blocks outlive each other and are freed by others. */
static void test_threads(void)
{
    struct ms_replay replay;
    struct ms_replay_order orders[3];
    struct ms_replay_result results[3];
    char settings[4096], path[4000];

    snprintf(path, sizeof(path), "%s/threads.json", getenv("TEST_TMP"));
    snprintf(settings, sizeof(settings), "MEMSHIM_REPORT=%s", path);
    course.count = course.block_count = 0;
    course.device_count = 1;
    for (uint32_t block = 0; block < 9; block++)
        add((block + 1) * MIB, block, MS_KIND_DEVICE, 0, 0);
    for (uint32_t block = 0; block < 4; block++)
        add(0, block, MS_KIND_DEVICE, 0, 0);
    for (size_t i = 0; i < course.count; i++)
        events[i].thread = (uint16_t)(i * 7 % 3);
    if (ms_replay_open(&course, &replay) < 0)
        bail("no course");
    orders[0] = order_of(&replay, settings);
    orders[1] = order_of(&replay, "MEMSHIM_MODE=track");
    orders[2] = order_of(&replay, "");
    orders[2].device_bytes = 30 * MIB;
    if (ms_replay_all(orders, results, 3, NULL, NULL) < 0)
        bail("nothing can be replayed");
    ok(results[0].completed && threads_of(path) == 3, "each thread of the program's has one: %zu",
       threads_of(path));
    ok(results[1].completed && results[1].sums.calls == course.count && results[1].peak >= 45 * MIB,
       "which take turns in the recorded order");
    ok(!results[2].completed && results[2].refused < 9, "until one is refused: %zu", results[2].refused);
    ms_replay_close(&replay);
}

/* The library and the simulator are looked for beside the command: a copy of this program lies there. */
static void lie_as_installed(char **argv)
{
    const char *place = getenv("TEST_TMP"), *built = getenv("top_builddir");
    char command[8192];

    if (!place || !built)
        bail("to be run by tests/helpers/run-test");
    if (strstr(argv[0], "/bin/installed"))
        return;
    snprintf(command, sizeof(command),
             "cd '%s' && mkdir -p bin lib/memshim/sim && cp /proc/%d/exe bin/installed && "
             "ln -s '%s/libmemshim.so' lib && ln -s '%s/libcuda.so.1' lib/memshim/sim",
             place, (int)getpid(), built, built);
    if (system(command) != 0)
        bail("there is no copy");
    snprintf(command, sizeof(command), "%s/bin/installed", place);
    execl(command, command, (char *)NULL);
    bail("the copy is not run");
}

int main(int argc, char **argv)
{
    (void)argc;
    lie_as_installed(argv);
    plan(0);
    test_kinds();
    test_refused();
    test_threads();
    return done();
}
