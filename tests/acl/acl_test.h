/*
 * acl_test.h: what the tests of the Ascend interface share. They are linked against the library and see its
 * functions under their exported names, as a program is that was linked with -lascendcl.
 */
#ifndef MS_TESTS_ACL_TEST_H
#define MS_TESTS_ACL_TEST_H

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "vendor/abi/acl.h"
#include "vendor/abi/acl_fn.h"
#include "tests/clock.h"
#include "tests/tap.h"

#define MIB (1024UL * 1024UL)

/** The call answers this status. */
#define answers(call, status) is_int((call), (status), "%s answers " #status, #call)

/** The call must succeed, or nothing that follows makes sense. */
#define must(call)                                                                                           \
    do {                                                                                                     \
        aclError must_status = (call);                                                                       \
        if (must_status != ACL_SUCCESS)                                                                      \
            bail("%s:%d: %s: status %d", __FILE__, __LINE__, #call, must_status);                            \
    } while (0)

/** What torch_npu asks for: pinned memory of a device in huge pages. */
__attribute__((unused)) static aclrtPhysicalMemProp physical_of(uint32_t device)
{
    return (aclrtPhysicalMemProp){.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                  .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                  .memAttr = ACL_HBM_MEM_HUGE,
                                  .location = {device, ACL_MEM_LOCATION_TYPE_DEVICE}};
}

__attribute__((unused)) static void begin(void)
{
    must(aclInit(NULL));
    must(aclrtSetDevice(0));
}

/** Bytes of the current device that are in use. */
__attribute__((unused)) static size_t taken(void)
{
    size_t left = 0, total = 0;

    must(aclrtGetMemInfo(ACL_HBM_MEM, &left, &total));
    return total - left;
}

/** A host function that holds its stream until the flag behind data is raised; 30 seconds at most. */
__attribute__((unused)) static void hold(void *data)
{
    for (int i = 0; i < 30000 && !atomic_load((atomic_int *)data); i++)
        pause_ms(1);
}

#endif
