/*
 * reloader.c - opens and closes a library again and again, at another address each time, and allocates
 * through it.
 *
 * usage: reloader LIBRARY FUNCTION TIMES. A program that loads and unloads a plugin does this. Same output
 * natively and under memshim, which must see the last allocation as it saw the first.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef int alloc_func_t(void **, size_t);

/* Something else lies where the library was, so that it comes back elsewhere. */
static void block(uintptr_t address)
{
    mmap((void *)address, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(int argc, char **argv)
{
    int times = argc > 3 ? atoi(argv[3]) : 1, good = 0, moved = 0;
    uintptr_t last = 0;

    for (int i = 0; i < times; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *p = NULL;
        struct link_map *map = NULL;
        alloc_func_t *alloc;

        if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
            return 1;
        moved += map->l_addr != last;
        last = map->l_addr;
        alloc = (alloc_func_t *)dlsym(library, argv[2]);
        good += alloc && alloc(&p, 4096) == 0;
        dlclose(library);
        block(last);
    }
    printf("%d of %d allocations, at %d places\n", good, times, moved);
    return 0;
}
