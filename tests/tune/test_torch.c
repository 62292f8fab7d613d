/* test_torch.c - the model of PyTorch's allocator on courses of which the answers can be told by hand, and
 * its settings. `scripts/bench torch` holds it against the allocator of the wheel. */
#include "cli/torch/torch.h"

#include "tests/tap.h"

#define MIB (UINT64_C(1) << 20)

static struct ms_course_event events[256];
static struct ms_course course = {.events = events};

static void begin(void)
{
    course.count = course.block_count = 0;
}

static uint32_t take_on(uint16_t stream, uint64_t bytes)
{
    events[course.count++] =
        (struct ms_course_event){.bytes = bytes, .block = course.block_count, .stream = stream};
    return course.block_count++;
}

static uint32_t take(uint64_t bytes)
{
    return take_on(0, bytes);
}

static void give(uint32_t block)
{
    events[course.count] = (struct ms_course_event){.block = block};
    for (size_t i = 0; i < course.count; i++)
        if (events[i].block == block)
            events[course.count].stream = events[i].stream;
    course.count++;
}

static struct ms_torch_result run(const char *text, uint64_t capacity)
{
    struct ms_torch_settings settings;
    struct ms_torch_result result;
    char error[200];

    if (ms_torch_parse(text, &settings, error, sizeof(error)) != 0)
        bail("%s", error);
    if (ms_torch_replay(&course, &settings, capacity, &result) != 0)
        bail("no memory");
    return result;
}

static void test_rounding(void)
{
    begin();
    take(1);
    take(MIB);
    ok(run("", UINT64_MAX).peak_reserved == 2 * MIB && run("", UINT64_MAX).peak_allocated == MIB + 512,
       "small blocks share a segment of 2 MiB, and are multiples of 512 bytes");
    begin();
    for (int i = 0; i < 13; i++)
        take(3 * MIB / 2);
    ok(run("", UINT64_MAX).peak_reserved == 20 * MIB, "blocks of 1 to 10 MiB share one of 20 MiB");
    take(3 * MIB / 2);
    ok(run("", UINT64_MAX).segments == 2, "as long as there is room");
    ok(run("large_segment_size_mb:64", UINT64_MAX).peak_reserved == 64 * MIB, "or one as long as is set");
    begin();
    take(11 * MIB + 1);
    ok(run("", UINT64_MAX).peak_reserved == 12 * MIB && run("", UINT64_MAX).peak_allocated == 12 * MIB,
       "a larger one has its own, in whole 2 MiB; less than 1 MiB of it is not split off");
    begin();
    take(600 * MIB);
    ok(run("roundup_power2_divisions:4", UINT64_MAX).peak_allocated == 640 * MIB,
       "a size is rounded up to a quarter of its power of two");
    ok(run("roundup_power2_divisions:[256:1,512:2,>:8]", UINT64_MAX).peak_allocated == 768 * MIB &&
           run("roundup_power2_divisions:[256:1,>:8]", UINT64_MAX).peak_allocated == 640 * MIB,
       "or as its row of the list says");
}

static void test_splitting(void)
{
    begin();
    give(take(100 * MIB));
    take(60 * MIB);
    ok(run("", UINT64_MAX).peak_reserved == 100 * MIB, "a free block that is longer is split");
    ok(run("max_split_size_mb:64", UINT64_MAX).peak_reserved == 160 * MIB,
       "but not one of the size that is set");
    take(35 * MIB);
    ok(run("", UINT64_MAX).peak_reserved == 100 * MIB, "its rest serves, too");
    begin();
    give(take(100 * MIB));
    take_on(1, 100 * MIB);
    ok(run("", UINT64_MAX).peak_reserved == 200 * MIB, "what is free of one stream serves no other");
}

static void test_expandable(void)
{
    uint32_t first;

    begin();
    first = take(100 * MIB);
    take(40 * MIB);
    give(first);
    take(120 * MIB);
    ok(run("", UINT64_MAX).peak_reserved == 260 * MIB, "segments have holes that are too short");
    ok(run("expandable_segments:True", UINT64_MAX).peak_reserved == 260 * MIB &&
           run("expandable_segments:True", UINT64_MAX).mapped == 13,
       "as has an expandable one, which is mapped by 20 MiB");
    ok(run("expandable_segments:True", 200 * MIB).completed && !run("", 159 * MIB).completed &&
           run("expandable_segments:True", 200 * MIB).unmapped == 5,
       "where memory is short, the pages of the hole are mapped at its end");
    begin();
    give(take(50 * MIB));
    take(90 * MIB);
    ok(run("expandable_segments:True", UINT64_MAX).peak_reserved == 100 * MIB,
       "what is free at its end grows to the size that is asked for");
}

static void test_short(void)
{
    struct ms_torch_result result;

    begin();
    give(take(100 * MIB));
    take(120 * MIB);
    result = run("", 200 * MIB);
    ok(result.completed && result.retries == 1 && result.segments_freed == 1 &&
           result.peak_reserved == 120 * MIB,
       "what is free goes back where the device has no more");
    result = run("", 119 * MIB);
    ok(!result.completed && result.events == 2, "and what does not fit then is refused");
    result = run("per_process_memory_fraction:0.5", 200 * MIB);
    ok(!result.completed && result.events == 2, "a share of the device is a bound");
    begin();
    give(take(70 * MIB));
    give(take(80 * MIB));
    take(120 * MIB);
    result = run("max_split_size_mb:64", 200 * MIB);
    ok(result.completed && result.retries == 0 && result.segments_freed == 2,
       "blocks that may not be split go back first, the longest before");
    begin();
    give(take(30 * MIB));
    give(take(40 * MIB));
    take(50 * MIB);
    result = run("garbage_collection_threshold:0.5,per_process_memory_fraction:1.0", 100 * MIB);
    ok(result.segments_freed == 1 && result.peak_reserved == 90 * MIB && result.retries == 0,
       "beyond the threshold the older half of the blocks goes back");
}

static void test_settings(void)
{
    static const char *const bad[] = {"expandable_segments",
                                      "expandable_segments:yes",
                                      "max_split_size_mb:-1",
                                      "max_split_size_mb:",
                                      "roundup_power2_divisions:3",
                                      "roundup_power2_divisions:[256:1",
                                      "roundup_power2_divisions:[255:1]",
                                      "garbage_collection_threshold:2",
                                      "max_split_size_mb:19",
                                      "large_segment_size_mb:10",
                                      "backend:cudaMallocAsync",
                                      "large_segment_size_mb:0"};
    struct ms_torch_settings settings;
    char error[200];

    ok(ms_torch_parse(" expandable_segments : True , backend:native", &settings, error, sizeof(error)) == 0 &&
           settings.expandable_segments,
       "blanks and keys that decide nothing are passed over");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok(ms_torch_parse(bad[i], &settings, error, sizeof(error)) < 0 && strstr(error, "PyTorch takes no"),
           "refused: %s", error);
}

int main(void)
{
    plan(0);
    test_rounding();
    test_splitting();
    test_expandable();
    test_short();
    test_settings();
    return done();
}
