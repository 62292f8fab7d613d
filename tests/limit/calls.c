/*
 * calls.c - one allocating function at a time, until there is no memory: for table.py, which sets
 * MEMSHIM_LIMIT.
 *
 *   calls list             prints "interface function" for each
 *   calls FUNCTION BYTES   asks for BYTES again and again, gives all back, and asks again
 *
 * Prints "what value" lines. `refused` and `again` have "status number"; sizes are in bytes. `used` is what
 * the simulator's device has given, `most` the most of it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/limit/rows.h"

enum { MOST = 64 };

static const struct vendor *const vendors[] = {&cuda_vendor, &hip_vendor, &acl_vendor};
static const char *const names[] = {"cuda", "hip", "acl"};
static struct thing things[MOST];

static long long told(const struct vendor *vendor, const char *what)
{
    void *library = dlopen(vendor->library, RTLD_NOW | RTLD_NOLOAD);
    long long (*count)(const char *) =
        library ? (long long (*)(const char *))(uintptr_t)dlsym(library, "memsim_count") : NULL;

    return count ? count(what) : -1;
}

static void say_memory(const struct vendor *vendor, const char *when)
{
    size_t left = 0, total = 0;
    int status = vendor->memory(&left, &total);

    printf("%s_status %d\n%s_free %zu\n%s_total %zu\n", when, status, when, left, when, total);
}

/* Returns how many it got; what the first that it did not get answered is in *status_p. */
static int fill(const struct row *row, size_t bytes, int *status_p)
{
    int count = 0;

    *status_p = 0;
    while (count < MOST && (*status_p = row->take(&things[count], bytes)) == 0)
        count++;
    return count;
}

static int play(const struct vendor *vendor, const struct row *row, size_t bytes)
{
    int status = vendor->begin(), count, failed = 0, more;

    if (status)
        return status;
    say_memory(vendor, "begin");
    /* The vendor may be told to refuse these, but for the last. */
    for (int i = 0; i < 3 && (status = row->take(&things[0], bytes)) != 0; i++)
        printf("early_%d %d\n", i, status);
    if (status == 0)
        row->give(&things[0]);
    vendor->wait();
    count = fill(row, bytes, &status);
    printf("refused %d %d\n", status, count);
    printf("used %lld\nmost %lld\n", told(vendor, "used_bytes"), told(vendor, "peak_bytes"));
    say_memory(vendor, "full");
    for (int i = 0; i < count; i++)
        failed += row->give(&things[i]) != 0;
    vendor->wait();
    printf("failed %d\n", failed);
    say_memory(vendor, "empty");
    more = fill(row, bytes, &status);
    printf("again %d %d\n", status, more);
    for (int i = 0; i < more; i++)
        row->give(&things[i]);
    return 0;
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
        for (const struct row *row = vendors[i]->rows; row->name; row++) {
            if (argc == 2)
                printf("%s %s\n", names[i], row->name);
            else if (argc == 3 && !strcmp(argv[1], row->name))
                return play(vendors[i], row, strtoull(argv[2], NULL, 10));
        }
    }
    return argc == 2 ? 0 : 99;
}
