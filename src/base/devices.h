/* devices.h - one space of device numbers for all vendors' interfaces.
 *
 * Floor 0. Each interface counts its devices from 0. Inside memshim a device has a number of its own, so that
 * the record, the pool and the hooks can tell CUDA's device 0 from HIP's: what is kept by device has
 * MS_DEVICES_MAX places. People see the interface and its index. A device that has no number is counted with
 * what lies on none. */
#ifndef MS_BASE_DEVICES_H
#define MS_BASE_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#define MS_DEVICE_NONE (-1) /* host memory, or a device that could not be told */

/** Whose devices: the interfaces that have some. */
enum ms_maker { MS_MAKER_CUDA, MS_MAKER_HIP, MS_MAKER_ACL, MS_MAKER_COUNT };

/* How many each can have. A node of accelerators that each show themselves as eight parts has 64. */
enum {
    MS_DEVICES_CUDA = 32,
    MS_DEVICES_HIP = 64,
    MS_DEVICES_ACL = 32,
    MS_DEVICES_EACH = MS_DEVICES_HIP, /* none has more */
    MS_DEVICES_MAX = MS_DEVICES_CUDA + MS_DEVICES_HIP + MS_DEVICES_ACL,
};
_Static_assert(MS_DEVICES_CUDA <= MS_DEVICES_EACH && MS_DEVICES_ACL <= MS_DEVICES_EACH,
               "the most of one interface");
_Static_assert(MS_DEVICES_MAX <= 128, "a number fits 8 bits with a sign: a row of the ledger");

static inline int ms_device_first(enum ms_maker maker)
{
    return maker == MS_MAKER_CUDA  ? 0
           : maker == MS_MAKER_HIP ? MS_DEVICES_CUDA
                                   : MS_DEVICES_CUDA + MS_DEVICES_HIP;
}

static inline int ms_device_count(enum ms_maker maker)
{
    return maker == MS_MAKER_CUDA ? MS_DEVICES_CUDA : maker == MS_MAKER_HIP ? MS_DEVICES_HIP : MS_DEVICES_ACL;
}

/** The number of an interface's device; MS_DEVICE_NONE for an index that it cannot have. */
static inline int ms_device_number(enum ms_maker maker, int index)
{
    return index >= 0 && index < ms_device_count(maker) ? ms_device_first(maker) + index : MS_DEVICE_NONE;
}

/** True of a device's number, in the outer layer. */
static inline bool ms_device_is_known(int number)
{
    return number >= 0 && number < MS_DEVICES_MAX;
}

static inline enum ms_maker ms_device_maker(int number)
{
    if (number < ms_device_first(MS_MAKER_HIP))
        return MS_MAKER_CUDA;
    return number < ms_device_first(MS_MAKER_ACL) ? MS_MAKER_HIP : MS_MAKER_ACL;
}

/** The device's number in its own interface. */
static inline int ms_device_index(int number)
{
    return number < 0 ? number : number - ms_device_first(ms_device_maker(number));
}

/** Memory is recorded in two layers: blocks that the vendor's functions gave, and inner blocks, pieces of
 * those that an allocator of the program's gave on (record/live/inner.h). What is counted by device has the
 * inner layer of a device, or of none, under a number of its own. */
enum ms_layer { MS_LAYER_OUTER, MS_LAYER_INNER, MS_LAYERS };
#define MS_DEVICE_INNER 256 /* device 0's */
static inline int ms_device_inner(int number)
{
    return MS_DEVICE_INNER + number;
}
static inline int ms_device_is_inner(int number)
{
    return number >= MS_DEVICE_INNER + MS_DEVICE_NONE && number < MS_DEVICE_INNER + MS_DEVICES_MAX;
}
static inline enum ms_layer ms_device_layer(int number)
{
    return ms_device_is_inner(number) ? MS_LAYER_INNER : MS_LAYER_OUTER;
}
/** The device, whichever layer is meant. */
static inline int ms_device_plain(int number)
{
    return ms_device_is_inner(number) ? number - MS_DEVICE_INNER : number;
}

/** "cuda", "hip", "acl": `api` of the report's devices. */
static inline const char *ms_device_api(int number)
{
    static const char *const names[MS_MAKER_COUNT] = {"cuda", "hip", "acl"};
    return names[ms_device_maker(number)];
}

#endif
