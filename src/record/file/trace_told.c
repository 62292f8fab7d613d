/* trace_told.c - what records refer to: threads, streams, shapes, names of phases; see trace_told.h.
 *
 * Floor 2. */
#include "record/file/trace_told.h"

struct ms_told ms_told;

unsigned char *ms_told_thread(unsigned char *at, uint32_t thread)
{
    if (thread == ms_told.thread)
        return at;
    ms_told.thread = thread;
    *at++ = MS_TRACE_R_THREAD;
    return ms_trace_put_number(at, thread);
}

static unsigned char *introduce(unsigned char *at, unsigned number)
{
    struct ms_told_stream *stream = &ms_told.stream[number];
    int device = stream->device;
    if (stream->is_told || !number)
        return at;
    stream->is_told = true;
    *at++ = MS_TRACE_R_STREAM;
    at = ms_trace_put_number(at, number);
    at = ms_trace_put_number(at, device < 0 ? MS_MAKER_CUDA : ms_device_maker(device));
    at = ms_trace_put_number(at, ms_trace_fold(ms_device_index(device)));
    at = ms_trace_put_number(at, stream->handle);
    return ms_trace_put_number(at, stream->thread);
}

/* The last number stands for all that have none of their own. */
static unsigned stream_number(uint64_t handle, uint32_t thread, int16_t device)
{
    if (handle <= 1) /* the default stream has two names */
        handle = 0;
    unsigned number = handle || device ? 1 : 0;
    for (; number && number < MS_TOLD_STREAMS - 1 && ms_told.stream[number].used; number++) {
        const struct ms_told_stream *known = &ms_told.stream[number];
        if (known->handle == handle && known->device == device && known->thread == thread)
            return number;
    }
    if (!ms_told.stream[number].used) {
        ms_told.stream[number] = (struct ms_told_stream){handle, thread, device, true, false};
        ms_told.streams++;
    }
    return number;
}

static void count_size(uint64_t bytes)
{
    uint64_t place = bytes * 0x9e3779b97f4a7c15u >> 52;
    _Static_assert(MS_TOLD_SIZES == 1 << 12, "the number of bits above");
    for (unsigned i = 0; i < MS_TOLD_SIZES; i++, place = (place + 1) % MS_TOLD_SIZES) {
        if (ms_told.size[place] == bytes + 1)
            return;
        if (!ms_told.size[place]) {
            ms_told.size[place] = bytes + 1;
            ms_told.sizes++;
            return;
        }
    }
}

/* A shape keeps its number; what was told of it before is forgotten. */
static unsigned char *put_shape(unsigned char *at, struct ms_told_shape *shape,
                                const struct ms_told_shape *wanted)
{
    uint32_t word = shape->what ? shape->word : ms_told.shapes++ << 2;
    unsigned kind = wanted->what >> 16 & 255;
    unsigned stream = stream_number(wanted->stream, wanted->thread, (int8_t)wanted->what);
    *shape = *wanted;
    shape->word = word;
    if (kind != MS_KIND_INNER)
        count_size(shape->bytes);
    at = introduce(at, stream);
    *at++ = MS_TRACE_R_SHAPE;
    at = ms_trace_put_number(at, word >> 2);
    at = ms_trace_put_number(at, shape->bytes);
    at = ms_trace_put_number(at, stream);
    at = ms_trace_put_number(at, shape->whole == MS_TOLD_NO_SITE ? 0 : (uint64_t)shape->whole + 1);
    return ms_trace_put_number(at, kind);
}

/* Shape of the block in a row, which is told of if it was not. Where a site is known it has one device and
 * kind, which has addresses or not. */
struct ms_told_shape *ms_told_shape(const struct ms_block_row *row, unsigned kind, unsigned char **at_p)
{
    const struct ms_site *site = ms_site_row(row->site);
    const struct ms_told_shape wanted = {
        .bytes = row->requested,
        .stream = kind == MS_KIND_INNER ? 0 : row->stream,
        .site = !site || row->stream == MS_TOLD_PER_THREAD || !ms_told_has_address(row) ? MS_TOLD_NOT_EASY
                                                                                        : row->site,
        .layer = ms_told_layer(kind),
        .whole = site ? site->whole : MS_TOLD_NO_SITE,
        .thread = row->stream == MS_TOLD_PER_THREAD ? row->thread : 0,
        .what = MS_TOLD_WHAT(kind, row->device)};
    struct ms_told_shape *shape = ms_told_shape_at(wanted.bytes, wanted.stream, row->site);
    if (shape->bytes != wanted.bytes || shape->stream != wanted.stream || shape->site != wanted.site ||
        shape->whole != wanted.whole || shape->thread != wanted.thread || shape->what != wanted.what)
        *at_p = put_shape(*at_p, shape, &wanted);
    return shape;
}

static unsigned char *put_text(unsigned char *at, const char *text)
{
    size_t count = strnlen(text, MS_TRACE_TEXT_BYTES - 1);
    at = ms_trace_put_number(at, count);
    memcpy(at, text, count);
    return at + count;
}

unsigned char *ms_told_phase(unsigned char *at, uint32_t phase, unsigned source, const char *domain,
                             const char *name)
{
    if (phase >= MS_TRACE_PHASES || ms_told.phase_told[phase])
        return at;
    ms_told.phase_told[phase] = true;
    *at++ = MS_TRACE_R_PHASE;
    at = ms_trace_put_number(at, phase);
    at = ms_trace_put_number(at, source);
    return put_text(put_text(at, domain), name);
}
