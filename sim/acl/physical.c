/*
 * Physical memory by handle: what a handle may be made of, how large it becomes, and how long it lives. Each
 * has a file of its own in the rooms below, so that any can be shared. Own: the table of handles and its
 * mutex. Values of freed handles come back at once.
 */
#include <pthread.h>
#include <stdlib.h>

#include "sim/acl/acl.h"

#define GIB (1UL << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct acl_physical *live, *spare;

void acl_physical_lock(void)
{
    pthread_mutex_lock(&lock);
}

void acl_physical_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

struct acl_physical *acl_physical_find(aclrtDrvMemHandle handle)
{
    struct acl_physical *physical = live;

    while (physical && (physical != handle || !physical->refs))
        physical = physical->next;
    return physical;
}

struct acl_physical *acl_physical_at(const void *address)
{
    CUmemGenericAllocationHandle number = 0;
    struct acl_physical *physical = live;

    if (cuMemRetainAllocationHandle(&number, (void *)(uintptr_t)address) != CUDA_SUCCESS)
        return NULL;
    cuMemRelease(number);
    while (physical && physical->number != number)
        physical = physical->next;
    return physical;
}

struct acl_physical *acl_physical_enter(CUmemGenericAllocationHandle number, const aclrtPhysicalMemProp *prop,
                                        size_t bytes)
{
    struct acl_physical *physical = spare ? spare : malloc(sizeof *physical);

    if (!physical)
        return NULL;
    if (physical == spare)
        spare = spare->next;
    *physical =
        (struct acl_physical){.next = live, .number = number, .prop = *prop, .bytes = bytes, .refs = 1};
    live = physical;
    return physical;
}

void acl_physical_settle(struct acl_physical *physical)
{
    struct acl_physical **link = &live;

    if (physical->refs || physical->maps)
        return;
    while (*link != physical)
        link = &(*link)->next;
    *link = physical->next;
    physical->next = spare;
    spare = physical;
}

/* Peer-to-peer pages of HBM are not to be had by handle; DDR is the host's. */
static bool known_attr(aclrtMemAttr attr, bool on_device)
{
    switch ((int)attr) {
    case ACL_HBM_MEM_HUGE:
    case ACL_HBM_MEM_NORMAL:
    case ACL_HBM_MEM_HUGE1G:
        return true;
    case ACL_DDR_MEM_HUGE:
    case ACL_DDR_MEM_NORMAL:
    case ACL_DDR_MEM_P2P_HUGE:
    case ACL_DDR_MEM_P2P_NORMAL:
        return !on_device;
    default:
        return attr >= ACL_MEM_NORMAL && attr <= ACL_MEM_P2P_HUGE1G;
    }
}

aclError acl_physical_check(const aclrtPhysicalMemProp *prop)
{
    ACL_CHECK(prop && prop->handleType == ACL_MEM_HANDLE_TYPE_NONE &&
                  prop->allocationType == ACL_MEM_ALLOCATION_TYPE_PINNED,
              ACL_ERROR_INVALID_PARAM);
    bool on_device = prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
    bool on_host = prop->location.type == ACL_MEM_LOCATION_TYPE_HOST ||
                   prop->location.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
    ACL_CHECK((on_device || on_host) && known_attr(prop->memAttr, on_device), ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(!on_device || sim_device((int)prop->location.id), ACL_ERROR_RT_INVALID_DEVICEID);
    return ACL_SUCCESS;
}

bool acl_location(const aclrtMemLocation *from, CUmemLocation *to)
{
    switch ((int)from->type) {
    case ACL_MEM_LOCATION_TYPE_DEVICE:
        *to = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, (int)from->id};
        return true;
    case ACL_MEM_LOCATION_TYPE_HOST:
    case ACL_MEM_LOCATION_TYPE_HOST_NUMA:
        *to = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
        return true;
    default:
        return false;
    }
}

/* Normal pages come as huge ones. */
static size_t granularity(const aclrtPhysicalMemProp *prop)
{
    bool giant = prop->memAttr == ACL_HBM_MEM_HUGE1G || prop->memAttr == ACL_MEM_HUGE1G ||
                 prop->memAttr == ACL_MEM_P2P_HUGE1G;

    return giant ? GIB : sim_config.granularity_bytes;
}

ACL_API(aclrtMemGetAllocationGranularity)
(aclrtPhysicalMemProp *prop, aclrtMemGranularityOptions option, size_t *bytes_p)
{
    ACL_ENTER(aclrtMemGetAllocationGranularity);
    ACL_CHECK(prop && bytes_p &&
                  (option == ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM ||
                   option == ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED),
              ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_physical_check(prop));
    *bytes_p = granularity(prop);
    return ACL_SUCCESS;
}

ACL_API(aclrtMallocPhysical)
(aclrtDrvMemHandle *handle_p, size_t bytes, const aclrtPhysicalMemProp *prop, uint64_t flags)
{
    ACL_ENTER(aclrtMallocPhysical);
    CUmemAllocationProp below = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemGenericAllocationHandle number;

    ACL_CHECK(handle_p && bytes && prop && !flags, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_physical_check(prop));
    ACL_TRY(acl_context());
    size_t granule = granularity(prop), rounded = (bytes + granule - 1) / granule * granule;
    ACL_CHECK(bytes + granule > bytes, ACL_ERROR_RT_MEMORY_ALLOCATION);
    acl_location(&prop->location, &below.location);
    ACL_TRY(acl_status(cuMemCreate(&number, rounded, &below, 0)));
    acl_physical_lock();
    struct acl_physical *physical = acl_physical_enter(number, prop, rounded);
    acl_physical_unlock();
    if (!physical) {
        cuMemRelease(number);
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    *handle_p = physical;
    return ACL_SUCCESS;
}

ACL_API(aclrtFreePhysical)(aclrtDrvMemHandle handle)
{
    ACL_ENTER(aclrtFreePhysical);
    uint64_t shared = 0;

    ACL_CHECK(handle, ACL_ERROR_INVALID_PARAM);
    acl_physical_lock();
    struct acl_physical *physical = acl_physical_find(handle);
    if (physical && !--physical->refs) {
        shared = physical->shared;
        physical->shared = 0;
        cuMemRelease(physical->number);
        acl_physical_settle(physical);
    }
    acl_physical_unlock();
    if (shared)
        acl_share_forget(shared);
    return physical ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_HANDLE;
}

ACL_API(aclrtMemRetainAllocationHandle)(void *address, aclrtDrvMemHandle *handle_p)
{
    ACL_ENTER(aclrtMemRetainAllocationHandle);
    CUmemGenericAllocationHandle number;

    ACL_CHECK(address && handle_p, ACL_ERROR_INVALID_PARAM);
    acl_physical_lock();
    struct acl_physical *physical = acl_physical_at(address);
    if (physical && !physical->refs++)
        cuMemRetainAllocationHandle(&number, address); /* what the last free gave back */
    acl_physical_unlock();
    if (physical)
        *handle_p = physical;
    return physical ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

ACL_API(aclrtMemGetAllocationPropertiesFromHandle)(aclrtDrvMemHandle handle, aclrtPhysicalMemProp *prop)
{
    ACL_ENTER(aclrtMemGetAllocationPropertiesFromHandle);
    ACL_CHECK(handle && prop, ACL_ERROR_INVALID_PARAM);
    acl_physical_lock();
    struct acl_physical *physical = acl_physical_find(handle);
    if (physical)
        *prop = physical->prop;
    acl_physical_unlock();
    return physical ? ACL_SUCCESS : ACL_ERROR_RT_INVALID_HANDLE;
}
