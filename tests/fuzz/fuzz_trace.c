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

size_t fuzz_seed(unsigned number, uint8_t *data, size_t max)
{
    static const char text[] =
        "# memshim 0.9.0, run 18a9c3f21b7d4e60: train, process 4711\n"
        "# columns: microseconds op(a|f|A|F) id bytes stream, and of a|A: site address\n"
        "# allocs 571 frees 563 distinct_sizes 30 streams 5 peak_live_bytes 120606720\n"
        "1664 a 1 25165824 0 0 0x7f2a40000000\n1808 a 2 524288 0 1 0x7f2a41800000\n1900 A 1 512 0 - 0x10\n"
        "# stream 1: hip device 1, handle 0x55d7a4c01f60, thread 12\n2011 a 3 196608 1 2 0x7f2a38000000\n"
        "2043 f 2 524288 0\n2043 F 1 512 0\n2050 f 1 25165824 0\n";

    if (number > 0 || sizeof text > max)
        return 0;
    memcpy(data, text, sizeof text - 1);
    return sizeof text - 1;
}
