/* c10.c - libc10.so, see c10.h. */
#include <stdatomic.h>

#include "c10.h"

static _Atomic uint64_t calls, sum;

/* An object with these two is taken for PyTorch's. */
void get_allocator(const int8_t *type) __asm__("_ZN3c1012GetAllocatorERKNS_10DeviceTypeE");
int is_valid(int8_t type) __asm__("_ZN3c1017isValidDeviceTypeENS_10DeviceTypeE");

void get_allocator(const int8_t *type)
{
    (void)type;
}

int is_valid(int8_t type)
{
    return type >= 0;
}

static void see(const void *at, int64_t size, struct device device)
{
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&sum, report_sum(at, size, device));
}

void report_1_8(void *at, int64_t size, struct device device)
{
    see(at, size, device);
}

void report_1_10(void *at, int64_t size, int64_t allocated, int64_t reserved, struct device device)
{
    see(at, size, device);
    atomic_fetch_add(&sum, (uint64_t)allocated * 3 + (uint64_t)reserved * 5);
}

void report_2_0(void *at, int64_t size, size_t allocated, size_t reserved, struct device device)
{
    see(at, size, device);
    atomic_fetch_add(&sum, (uint64_t)allocated * 3 + (uint64_t)reserved * 5);
}

void host_came(void *reporter, void *at, size_t bytes)
{
    const struct device cpu = {TYPE_CPU, -1};
    see(at, reporter ? (int64_t)bytes : 0, cpu);
}

void host_went(void *reporter, void *at)
{
    host_came(reporter, at, 0);
}

void refused_1_13(int64_t size, int64_t allocated, int64_t reserved, struct device device)
{
    see(NULL, size, device);
    atomic_fetch_add(&sum, (uint64_t)allocated * 3 + (uint64_t)reserved * 5);
}

void refused_2_0(int64_t size, size_t allocated, size_t reserved, struct device device)
{
    see(NULL, size, device);
    atomic_fetch_add(&sum, (uint64_t)allocated * 3 + (uint64_t)reserved * 5);
}

void c10_seen(uint64_t *calls_p, uint64_t *sum_p)
{
    *calls_p = atomic_load(&calls);
    *sum_p = atomic_load(&sum);
}
