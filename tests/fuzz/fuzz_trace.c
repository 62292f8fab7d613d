/* Fuzz target: a trace. Whatever the file says, events are in order, within what a reader may rely on, and
 * what is live is what came and has not gone. */
#include <stdlib.h>
#include <string.h>

#include "record/live/ledger.h"
#include "tests/fuzz/fuzz.h"
#include "trace/reader.h"

const char fuzz_name[] = "trace";

static void check(const struct ms_trace_reader *trace, const struct ms_trace_event *event, uint64_t last_ns)
{
    if (event->ns < last_ns || event->stream >= MS_TRACE_STREAMS || event->layer >= MS_LAYERS ||
        event->kind > MS_KIND_COUNT || event->bytes > INT64_MAX || event->op > MS_TRACE_MARK)
        abort();
    if (memchr(ms_trace_stream(trace, event->stream)->api, '\0', 33) == NULL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[4608] = "";
    struct ms_trace_event event;
    uint64_t last_ns = 0;
    int result = 0;

    fuzz_file(data, size);
    struct ms_trace_reader *trace = ms_trace_open(fuzz_path(), error, sizeof error);
    while (trace && (result = ms_trace_next(trace, &event)) != 0) {
        if (result < 0)
            break;
        check(trace, &event, last_ns);
        last_ns = event.ns;
    }
    if ((!trace || result < 0) != (*error != '\0') || strchr(error, '\n'))
        abort();
    ms_trace_close(trace);
    return 0;
}

/* Lines; records; records in parts, of which the oldest has fallen out. */
static const char text[] =
    "# memshim 0.9.0, run 18a9c3f21b7d4e60: train, process 4711\n"
    "# columns: microseconds op(a|f|A|F) id bytes stream, and of a|A: site address kind\n"
    "# allocs 571 frees 563 distinct_sizes 30 streams 5 peak_live_bytes 120606720\n"
    "# thread 4711\n1664 a 1 25165824 0 0 0x7f2a40000000 device\n1808 a 2 524288 0 1 0x7f2a41800000\n"
    "# phase 3: nvtx - a%20step\n# begin 1850 3 17 1\n1900 A 1 512 0 - 0x10\n"
    "# stream 1: hip device 1, handle 0x55d7a4c01f60, thread 12\n2011 a 3 196608 1 2 0x7f2a38000000\n"
    "2043 f 2 524288 0\n2043 F 1 512 0\n# end 2044 17\n# mark 2044 3\n2050 f 1 25165824 0\n";
#define RECORDS                                                                                              \
    "\x05\xe7\x24\x06\x01\x01\x02\x10\x05\x04\x00\x80\x04\x01\x03\x01\xf1\x90\x03\x01\x80\x20\x11\x00"       \
    "\x04\x01\x40\x00\x00\x06\x21\x06\x11\x07\x03\x01\x00\x04step\x08\x03\x01\x11\x22\x00\x12\x01\x13\x00"   \
    "\x29\x11"                                                                                               \
    "\x0a\x03\x41\x00"
static const char records[] = "# memshim 0.9.0, run 18a9c3f21b7d4e60: train, process 4711\n# binary 1\n"
                              "# unfinished\n" RECORDS;
enum { PART_BYTES = 1024, PARTS = 4 };
static const char parts[] = "# memshim 0.9.0, run 18a9c3f21b7d4e60: train, process 4711\n"
                            "# binary 1, 4 parts of 1024 bytes\n# unfinished\n";

/* Part 4 lies where part 0 was; each lists one block, which goes in it, and has another at its end. */
static size_t put_parts(uint8_t *data)
{
    size_t bytes = sizeof parts - 1;

    memset(data, 0, bytes + PARTS * PART_BYTES);
    memcpy(data, parts, bytes);
    for (unsigned i = 1; i <= PARTS; i++) {
        const uint8_t part[] = {11,         (uint8_t)i, (uint8_t)(i * 3),
                                (uint8_t)i, 0,          (uint8_t)(2 * i - 1),
                                4,          0,          100,
                                0,          0,          0,
                                12,         0,          1,
                                0x20,       2,          0,
                                13,         1,          0};

        memcpy(data + bytes + i % PARTS * PART_BYTES, part, sizeof part);
    }
    return bytes + PARTS * PART_BYTES;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t max)
{
    const char *seeds[] = {text, records};
    size_t sizes[] = {sizeof text - 1, sizeof records - 1};

    if (number == 2 && max > sizeof parts + PARTS * PART_BYTES)
        return put_parts(data);
    if (number > 1 || sizes[number] > max)
        return 0;
    memcpy(data, seeds[number], sizes[number]);
    return sizes[number];
}
