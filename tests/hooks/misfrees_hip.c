/* misfrees_hip.c - the scene with HIP of misfrees.c: its declarations and those of CUDA do not go together.
 */
#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"
#include "tests/hooks/misfrees.h"

enum { MIB = 1 << 20 };

void hip_scene(void)
{
    void *p = NULL;
    size_t pitch = 0;

    say("malloc", hipMalloc(&p, MIB));
    say("inside", hipFree((char *)p + 512));
    say("free", hipFree(p));
    say("again", hipFree(p));
    say("pitch", hipMallocPitch(&p, &pitch, 100, 100));
    say("free", hipFree(p));
    say("again", hipFree(p));
    say("host", hipHostMalloc(&p, MIB, 0));
    say("free", hipHostFree(p));
    say("again", hipHostFree(p));
    say("async", hipMallocAsync(&p, MIB, NULL));
    say("free", hipFreeAsync(p, NULL));
    say("again", hipFreeAsync(p, NULL));
}
