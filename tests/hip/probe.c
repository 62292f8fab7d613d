/* A program that knows nothing of HIP but its names. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    printf("hipMalloc %s\n", dlsym(RTLD_DEFAULT, "hipMalloc") ? "is there" : "is not there");
    printf("ncclMemAlloc %s\n", dlsym(RTLD_DEFAULT, "ncclMemAlloc") ? "is there" : "is not there");
    return 0;
}
