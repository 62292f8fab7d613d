/*
 * What a program sees of NCCL without a device: version, statuses, texts. Linked by the library's name, and
 * asking for it by dlsym as well; built from our own declarations, so that it runs on whichever copy is
 * found.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "vendor/abi/nccl_fn.h"

int main(void)
{
    ncclResult_t (*alloc)(void **, size_t) =
        (ncclResult_t(*)(void **, size_t))dlsym(RTLD_DEFAULT, "ncclMemAlloc");
    ncclResult_t (*release)(void *) = (ncclResult_t(*)(void *))dlsym(RTLD_DEFAULT, "pncclMemFree");
    void *p = (void *)0x1, *handle = (void *)0x1;
    ncclWindow_t window = (ncclWindow_t)0x1;
    int version = 0, count = 0;

    printf("version %d", ncclGetVersion(&version));
    printf(" %d\n", version);
    printf("version %d\n", ncclGetVersion(NULL));
    for (int i = -1; i < 10; i++)
        printf("%d %s\n", i, ncclGetErrorString((ncclResult_t)i));
    printf("alloc %d\n", ncclMemAlloc(&p, 1 << 20));
    printf("last %s\n", ncclGetLastError(NULL));
    printf("alloc %d\n", pncclMemAlloc(&p, 0));
    printf("alloc %d\n", ncclMemAlloc(NULL, 100));
    printf("pointer %p\n", p);
    printf("free %d %d\n", ncclMemFree(NULL), pncclMemFree(NULL));
    printf("found %d %d\n", alloc != NULL, release != NULL);
    printf("alloc %d\n", alloc ? (int)alloc(&p, 100) : -1);
    printf("free %d\n", release ? (int)release(NULL) : -1);
    printf("group %d %d\n", ncclGroupStart(), ncclGroupEnd());
    printf("group %d\n", ncclGroupEnd());
    printf("count %d\n", ncclCommCount(NULL, &count));
    printf("last %s\n", ncclGetLastError(NULL));
    printf("destroy %d %d\n", ncclCommDestroy(NULL), ncclCommAbort(NULL));
    printf("register %d %d\n", ncclCommRegister(NULL, &p, 8, &handle), pncclCommDeregister(NULL, NULL));
    printf("window %d\n", ncclCommWindowRegister(NULL, &p, 8, &window, 0));
    return 0;
}
