/* c10.h - what stands in for PyTorch here: libc10.so, which has the function by which allocators report their
 * blocks, and libc10_cuda.so, an allocator that does. */
#ifndef TESTS_INNER_C10_H
#define TESTS_INNER_C10_H

#include <stddef.h>
#include <stdint.h>

struct device {
    int8_t type, index;
};
enum { TYPE_CPU = 0, TYPE_CUDA = 1, TYPE_XPU = 12 };

/* By the names of C++: releases 1.8, 1.10 and 2.0. */
void report_1_8(void *, int64_t,
                struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE");
void report_1_10(void *, int64_t, int64_t, int64_t,
                 struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE");
void report_2_0(void *, int64_t, size_t, size_t,
                struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void refused_1_13(int64_t, int64_t, int64_t,
                  struct device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE");
void refused_2_0(int64_t, size_t, size_t,
                 struct device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

/* The host's allocator, likewise, since 1.8: a member of a class. */
void host_came(void *reporter, void *, size_t) __asm__("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
void host_went(void *reporter, void *) __asm__("_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv");

/* Reports that reached libc10.so: how many, and a sum over all that was said. */
void c10_seen(uint64_t *calls_p, uint64_t *sum_p);

/* libc10_cuda.so: pieces of segments of 2 MiB. `release` is one of the three, 0 to 2. */
void *caching_take(int release, size_t bytes);
void caching_give(int release, void *piece);
/* A block with a segment of its own, as PyTorch makes it: the vendor is asked, what is idle is given back,
 * and it is asked again; NULL, and reported, if there is none, or it would be beyond `allowed` bytes. */
void *caching_take_large(int release, size_t bytes, uint64_t allowed);
/* Of which type its device is from now on (TYPE_CUDA if not said). */
void caching_device(int8_t type);
/* Gives idle segments back, and says nothing. */
void caching_empty(void);
/* Reports host memory, which is none of a device's. */
void caching_host(int release, void *at, size_t bytes);
/* Memory of the host's allocator. */
void *host_take(size_t bytes);
void host_give(void *at);
/* Bytes given, bytes of segments, and the most that was given; a sum over all that was reported. */
struct caching {
    uint64_t allocated, reserved, peak, calls, sum;
};
void caching_told(struct caching *told_p);
/* The sum grows by this with each report. */
static inline uint64_t report_sum(const void *at, int64_t size, struct device device)
{
    return ((uint64_t)(uintptr_t)at ^ (uint64_t)size) * 31 + (uint64_t)device.type * 7 +
           (uint64_t)device.index;
}

#endif
