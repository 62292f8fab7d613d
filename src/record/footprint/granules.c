/* granules.c - see granules.h.
 *
 * Floor 2. Granules that a block fills by itself are not remembered; of the others it is counted how many
 * blocks lie there. One lock; the sum of each device is read without it. */
#include <stdatomic.h>

#include "base/devices.h"
#include "base/keyed.h"
#include "base/lock.h"
#include "record/footprint/granules.h"
#include "record/live/internal.h"

#define GRANULE_UNKNOWN (UINT64_C(2) << 20) /* of NVIDIA's and Huawei's devices; AMD's are not asked */

struct granule {
    struct ms_keyed by; /* its number and the device */
    uint32_t blocks;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_TIMELINE);
static struct ms_keyed_table granules = MS_KEYED_TABLE(struct granule, 128, 4096);
static _Atomic int64_t beyond[MS_DEVICES_MAX], small_arrays[MS_DEVICES_MAX], rounded[MS_DEVICES_MAX];
static _Atomic uint64_t sizes[MS_DEVICES_MAX]; /* the same for all that a device ever has */

static uint64_t granules_size_of(int device)
{
    uint64_t size = atomic_load_explicit(&sizes[device], memory_order_relaxed);
    struct ms_device_info info;
    if (MS_LIKELY(size))
        return size;
    size =
        ms_events_device(device, &info) && info.granularity_bytes ? info.granularity_bytes : GRANULE_UNKNOWN;
    atomic_store_explicit(&sizes[device], size, memory_order_relaxed);
    return size;
}

/* The bytes that a block takes: Ascend's runtime rounds it to 32 bytes, with 32 more behind it (CANN,
 * aclrtMalloc). */
static uint64_t taken(int device, uint64_t bytes)
{
    return ms_device_maker(device) == MS_MAKER_ACL ? (bytes + 63) / 32 * 32 : bytes;
}

/* Granules are far larger than the devices are many. */
static uint64_t granules_key(int device, uint64_t number)
{
    return number * MS_DEVICES_MAX + (unsigned)device;
}

/* One block more lies there; whether it is the first. */
static bool granules_enter(int device, uint64_t number)
{
    uint64_t key = granules_key(device, number);
    struct granule *granule = *ms_keyed_find(&granules, key);
    if (granule)
        return !granule->blocks++;
    if ((granule = ms_keyed_add(&granules, key)) != NULL)
        granule->blocks = 1;
    return true;
}

/* One less; whether it was the last. */
static bool granules_leave(int device, uint64_t number)
{
    void **place = ms_keyed_find(&granules, granules_key(device, number));
    struct granule *granule = *place;
    if (!granule || --granule->blocks)
        return !granule;
    ms_keyed_drop(&granules, place);
    return true;
}

static uint64_t within(uint64_t begin, uint64_t end, uint64_t from, uint64_t to)
{
    uint64_t first = begin > from ? begin : from, last = end < to ? end : to;
    return last > first ? last - first : 0;
}

/* The first granule and the last two are those that a block may lie in without filling them, with what is
 * taken behind it. */
static void granules_change(int device, uint64_t address, uint64_t bytes, bool (*count)(int, uint64_t),
                            int sign)
{
    uint64_t size = granules_size_of(device), end = address + taken(device, bytes), first = address / size,
             last = (end - 1) / size;
    for (uint64_t i = first; i <= last; i = i == first && last > first + 2 ? last - 1 : i + 1) {
        uint64_t from = i * size, asked = within(address, address + bytes, from, from + size);
        bool whole = within(address, end, from, from + size) == size;
        int64_t more = (whole || count(device, i) ? (int64_t)size : 0) - (int64_t)asked;
        atomic_fetch_add_explicit(&beyond[device], sign * more, memory_order_relaxed);
    }
}

static bool is_known(int device, uint64_t address, uint64_t bytes)
{
    return device >= 0 && device < MS_DEVICES_MAX && bytes && address < UINT64_MAX / 2 &&
           bytes < UINT64_MAX / 4;
}

void ms_granules_in(int device, uint64_t address, uint64_t bytes)
{
    if (!is_known(device, address, bytes))
        return;
    ms_lock(&lock);
    granules_change(device, address, bytes, granules_enter, 1);
    ms_unlock(&lock);
}

void ms_granules_out(int device, uint64_t address, uint64_t bytes)
{
    if (!is_known(device, address, bytes))
        return;
    ms_lock(&lock);
    granules_change(device, address, bytes, granules_leave, -1);
    ms_unlock(&lock);
}

void ms_granules_array(int device, uint64_t bytes, int more)
{
    if (!is_known(device, 0, bytes))
        return;
    uint64_t size = granules_size_of(device);
    bool is_small = bytes < size;
    int64_t by = (int64_t)(is_small ? bytes : (bytes + size - 1) / size * size - bytes);
    atomic_fetch_add_explicit(is_small ? &small_arrays[device] : &rounded[device], more * by,
                              memory_order_relaxed);
}

uint64_t ms_granules_beyond(int device)
{
    if (device < 0 || device >= MS_DEVICES_MAX)
        return 0;
    int64_t bytes = atomic_load_explicit(&beyond[device], memory_order_relaxed) -
                    atomic_load_explicit(&small_arrays[device], memory_order_relaxed),
            large = atomic_load_explicit(&rounded[device], memory_order_relaxed);
    return (uint64_t)((bytes > 0 ? bytes : 0) + (large > 0 ? large : 0));
}

static void granules_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&granules);
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        atomic_store_explicit(&beyond[i], 0, memory_order_relaxed);
        atomic_store_explicit(&small_arrays[i], 0, memory_order_relaxed);
        atomic_store_explicit(&rounded[i], 0, memory_order_relaxed);
        atomic_store_explicit(&sizes[i], 0, memory_order_relaxed);
    }
}
MS_AT_FORK(MS_FORK_RECORD, granules_reset);
