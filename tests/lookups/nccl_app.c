/* nccl_app.c - the NCCL library's own runtime makes the lookups; statuses are printed. */
#include <nccl.h>
#include <stdio.h>

int main(void)
{
    void *p = (void *)0x1;
    int version = 0;

    printf("alloc %d\n", ncclMemAlloc(&p, 1 << 20));
    printf("pointer %p\n", p);
    printf("free %d\n", ncclMemFree(NULL));
    printf("version %d %d\n", ncclGetVersion(&version), version > 0);
    return 0;
}
