/* self_report.c - a program that writes a report about its own call stack, for the tests of the symboliser.
 *
 * Standard output gets the report, as the recorder would write it: return addresses relative to the module,
 * no names. Standard error gets what the symboliser must find, "function line inlined" from the innermost
 * frame out. */
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 32

static int expected_lines[4];

struct place {
    uintptr_t address;
    uintptr_t bias;
    const unsigned char *build_id;
    size_t build_id_bytes;
    bool found;
};

static void read_notes(struct place *place, uintptr_t note, size_t bytes)
{
    const ElfW(Nhdr) *header = (const void *)note;

    while (bytes >= sizeof(*header)) {
        size_t name = (header->n_namesz + 3u) & ~3u, body = (header->n_descsz + 3u) & ~3u;

        if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4) {
            place->build_id = (const unsigned char *)(header + 1) + name;
            place->build_id_bytes = header->n_descsz;
            return;
        }
        if (bytes < sizeof(*header) + name + body)
            return;
        bytes -= sizeof(*header) + name + body;
        header = (const void *)((const char *)(header + 1) + name + body);
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct place *place = arg;
    int i;

    (void)size;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD && place->address >= start &&
            place->address < start + segment->p_memsz)
            place->found = true;
    }
    if (!place->found)
        return 0;
    place->bias = info->dlpi_addr;
    for (i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE && !place->build_id)
            read_notes(place, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, info->dlpi_phdr[i].p_memsz);
    return 1;
}

static void print_report(const char *path, void **addresses, int count)
{
    struct place place;
    size_t k;
    int i;

    printf("{\"schema_version\": \"1.0\", \"run\": {\"pid\": 1, \"symbolized\": false},\n"
           " \"modules\": [{\"id\": 0, \"path\": \"%s\", \"build_id\": \"",
           path);
    for (i = 0; i < count; i++) {
        place = (struct place){.address = (uintptr_t)addresses[i]};
        dl_iterate_phdr(visit, &place);
        for (k = 0; !i && k < place.build_id_bytes; k++)
            printf("%02x", place.build_id[k]);
        printf("%s{\"kind\": \"native\", \"module\": 0, \"rel_pc\": \"0x%lx\"}",
               i ? ", " : "\", \"generation\": 0, \"owner\": \"program\"}],\n \"frames\": [",
               (unsigned long)(place.address - place.bias));
    }
    printf("],\n \"stacks\": [[0, -1]");
    for (i = count - 1; i >= 0; i--)
        printf(", [%d, %d]", count - 1 - i, i);
    printf("],\n \"sites\": [{\"id\": 0, \"stack\": %d, \"device\": 0, \"api\": \"cudaMalloc\", "
           "\"live_bytes\": 4096}],\n"
           " \"leaks\": [{\"site\": 0, \"bytes\": 4096, \"count\": 1, \"class\": \"at_exit\"}]}\n",
           count);
}

/* Frames outside this program (the C library's start) are left out: what they are called is not ours to say.
 * So are the ones before this function's caller: under a sanitizer backtrace() is not the C library's own. */
__attribute__((noinline)) static void record(const char *path)
{
    void *addresses[DEPTH_MAX], *own[DEPTH_MAX];
    int i, own_count = 0, count = backtrace(addresses, DEPTH_MAX);
    struct place self = {.address = (uintptr_t)record}, place;

    dl_iterate_phdr(visit, &self);
    for (i = 0; i < count && addresses[i] != __builtin_return_address(0); i++)
        continue;
    for (; i < count; i++) {
        place = (struct place){.address = (uintptr_t)addresses[i]};
        dl_iterate_phdr(visit, &place);
        if (place.bias == self.bias && own_count < 2)
            own[own_count++] = addresses[i];
    }
    print_report(path, own, own_count);
}

static inline __attribute__((always_inline)) void innermost(const char *path)
{
    record(path), expected_lines[0] = __LINE__;
}

static inline __attribute__((always_inline)) void between(const char *path)
{
    innermost(path), expected_lines[1] = __LINE__;
}

__attribute__((noinline)) static void outer(const char *path)
{
    between(path), expected_lines[2] = __LINE__;
}

int main(int argc, char **argv)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[length > 0 ? length : 0] = '\0';
    (void)argv;
    outer(path), expected_lines[3] = __LINE__ + 0 * argc;
    fprintf(stderr, "innermost %d inlined\nbetween %d inlined\nouter %d plain\nmain %d plain\n",
            expected_lines[0], expected_lines[1], expected_lines[2], expected_lines[3]);
    return 0;
}
