/* answer.c - see answer.h. Runs in the program's threads, inside a hook scope around each question to the
 * pool; the vendor is called with the guard closed. No lock of its own, no allocation. */
#include "hooks/serve/answer.h"

#include <string.h>

#include "base/options/options.h"
#include "vendor/gpu.h"
#include "hooks/init.h"
#include "hooks/follow/ipc.h"
#include "hooks/serve/host_floor.h"
#include "hooks/serve/limit.h"
#include "hooks/serve/neighbours.h"
#include "hooks/serve/serve.h"
#include "pool/external/external.h"
#include "pool/stream/driver_frees.h"
#include "pool/stream/stream.h"
#include "pool/external/recycled.h"

/* Numbers of ours and of the vendor's never meet. */
#define OWN_BUFFER_ID (UINT64_C(1) << 62)

/* An address of ours as the program sees it. */
struct own {
    uint64_t address, bytes;
    uint64_t buffer_id; /* for the program */
    uint64_t id;        /* for memops.c */
    /* the block's, where the vendor's answer is not: memory that is mapped by handle has none */
    uint64_t context;
};

/* True if the address is the pool's; what was granted beyond what was asked for is nobody's. */
static bool look_in_pool(uint64_t address, struct own *own_p, bool *found_p)
{
    struct ms_external_block foreign;
    struct ms_pool_block block;
    bool ours;

    if (!ms_serve_is_on())
        return false;
    *found_p = false;
    if (ms_external_find(address, &foreign)) /* what the vendor says of a live one is true */
        return !foreign.live;
    ours = ms_pool_find(address, &block);
    *found_p = ours && address - block.address < block.requested;
    if (*found_p)
        *own_p = (struct own){block.address, block.requested, OWN_BUFFER_ID | block.id, block.id,
                              block.vmm ? block.context : 0};
    return ours || ms_pool_owns(address);
}

/* True if the address is ours: the pool's, or a packed block's of another process. `*found_p` says whether a
 * live block lies there. */
static bool answer_look(uint64_t address, struct own *own_p, bool *found_p)
{
    struct ms_ipc_view view;

    if (look_in_pool(address, own_p, found_p))
        return true;
    if (!ms_ipc_find(address, &view, found_p))
        return false;
    if (*found_p)
        *own_p = (struct own){view.address, view.bytes, view.id, view.id, 0};
    return true;
}

/* A question about an address, while it is put to the vendor. */
struct question {
    struct ms_hook_scope scope;
    struct own own;
    bool found;
    CUdeviceptr asked; /* the vendor is asked about this: the address, or what is nobody's */
};

/* False if the address is not ours: then the vendor answers as it stands. Else end_question() follows. */
static bool begin_question(struct question *question, uint64_t address)
{
    if (ms_thread.depth > 0 || !ms_init_active())
        return false;
    ms_hook_scope_enter(&question->scope);
    if (answer_look(address, &question->own, &question->found)) {
        question->asked = question->found ? address : MS_NOWHERE;
        return true;
    }
    ms_hook_scope_leave(&question->scope);
    return false;
}

static bool end_question(struct question *question)
{
    ms_hook_scope_leave(&question->scope);
    return true;
}

typedef CUresult (*range_func_t)(CUdeviceptr *, size_t *, CUdeviceptr);

bool ms_answer_RANGE(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    struct question question;
    CUdeviceptr base;
    size_t bytes;

    if (!begin_question(&question, args->key))
        return false;
    *status_p = (int)((range_func_t)target->real)(&base, &bytes, question.asked);
    if (*status_p == 0 && args->out)
        *(CUdeviceptr *)(uintptr_t)args->out = question.own.address;
    if (*status_p == 0 && args->pitch)
        *(size_t *)(uintptr_t)args->pitch = question.own.bytes;
    return end_question(&question);
}

typedef CUresult (*block_size_func_t)(void *, size_t *);

bool ms_answer_BLOCK_SIZE(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    struct question question;
    size_t bytes;

    if (!args->out || !begin_question(&question, args->key))
        return false;
    *status_p = (int)((block_size_func_t)target->real)((void *)(uintptr_t)question.asked, &bytes);
    if (*status_p == 0)
        *(size_t *)(uintptr_t)args->out = question.own.bytes;
    return end_question(&question);
}

/* Replaces what the vendor said by what is the block's own. */
static void put_own(const struct own *own, int attribute, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = own->buffer_id;
        break;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        if (own->context)
            *(CUcontext *)data = (CUcontext)(uintptr_t)own->context;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = own->address;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = own->bytes;
        break;
    /* the vendor's is that of the whole segment, and of those who were here before */
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned char *)data = ms_memops_get(own->id);
        break;
    default:
        break;
    }
}

typedef CUresult (*attribute_func_t)(void *, CUpointer_attribute, CUdeviceptr);

bool ms_answer_ATTRIBUTE(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    void *data = (void *)(uintptr_t)args->out;
    struct question question;

    if (!begin_question(&question, args->key))
        return false;
    *status_p = (int)((attribute_func_t)target->real)(data, (CUpointer_attribute)args->flags, question.asked);
    if (*status_p == 0 && question.found)
        put_own(&question.own, (int)args->flags, data);
    return end_question(&question);
}

typedef CUresult (*attributes_func_t)(unsigned int, CUpointer_attribute *, void **, CUdeviceptr);

bool ms_answer_ATTRIBUTES(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    CUpointer_attribute *attributes = (CUpointer_attribute *)(uintptr_t)args->given;
    void **data = (void **)(uintptr_t)args->out;
    struct question question;

    if (!begin_question(&question, args->key))
        return false;
    *status_p =
        (int)((attributes_func_t)target->real)((unsigned int)args->bytes, attributes, data, question.asked);
    for (unsigned i = 0; i < args->bytes && *status_p == 0; i++) {
        if (question.found)
            put_own(&question.own, (int)attributes[i], data[i]);
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && *(CUdeviceptr *)data[i] == MS_NOWHERE)
            *(CUdeviceptr *)data[i] =
                args->key; /* of what it does not know a driver says the address again */
    }
    return end_question(&question);
}

typedef int (*pointer_func_t)(void *, const void *);

/* Nothing in this answer is the block's own; where there is no block it is what the vendor says of
 * nowhere. */
bool ms_answer_POINTER(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    struct question question;

    if (!begin_question(&question, args->key))
        return false;
    *status_p =
        ((pointer_func_t)target->real)((void *)(uintptr_t)args->out, (const void *)(uintptr_t)question.asked);
    return end_question(&question);
}

typedef CUresult (*access_func_t)(unsigned long long *, const CUmemLocation *, CUdeviceptr);

/* Who may reach a block is what may reach the memory that it lies in, the driver's own or mapped. */
bool ms_answer_ACCESS(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    struct question question;

    if (!begin_question(&question, args->key))
        return false;
    *status_p =
        (int)((access_func_t)target->real)((unsigned long long *)(uintptr_t)args->out,
                                           (const CUmemLocation *)(uintptr_t)args->given, question.asked);
    return end_question(&question);
}

typedef CUresult (*set_attribute_func_t)(const void *, CUpointer_attribute, CUdeviceptr);

/* The vendor sets it for the whole segment, which costs the neighbours time and nothing else. */
bool ms_answer_SET_ATTRIBUTE(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    struct question question;

    if (!begin_question(&question, args->key))
        return false;
    *status_p = (int)((set_attribute_func_t)target->real)(args->out, (CUpointer_attribute)args->flags,
                                                          question.asked);
    if (*status_p == 0 && question.found && args->flags == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        ms_memops_set(question.own.id, *(const unsigned int *)args->out != 0);
    return end_question(&question);
}

static bool adjusts_meminfo(void)
{
    return ms_option_int(MS_OPT_MEMINFO) != MS_MEMINFO_REAL;
}

typedef CUresult (*meminfo_func_t)(size_t *, size_t *);

static bool answers_meminfo(void)
{
    return ms_thread.depth == 0 && ms_init_active() && ms_limit_or_service();
}

/* Free is what the vendor has, and `idle` that we could give back, or have; but no more than MEMSHIM_LIMIT
 * leaves, which is all that there is. */
static void adjust(int device, uint64_t idle, size_t *free_p, size_t *total_p)
{
    uint64_t own = ms_host_floor_free(device, *free_p) + idle, room = ms_quota_room(device),
             limit = ms_quota_limit(device);

    if (room != UINT64_MAX && own > room + idle)
        own = room + idle;
    if (*total_p > limit)
        *total_p = limit;
    *free_p = own < *total_p ? own : *total_p;
}

/* Free is what the driver has, with what is on its way back to it; and, unless its own answer is asked for,
 * what we could give back. */
bool ms_answer_MEMINFO(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    size_t *free_p = (size_t *)(uintptr_t)args->out, *total_p = (size_t *)(uintptr_t)args->pitch;
    struct ms_hook_scope scope;
    uint64_t context;
    int device;

    if (!free_p || !total_p || !answers_meminfo())
        return false;
    ms_hook_scope_enter(&scope);
    device = ms_gpu_current(target->gpu, &context);
    ms_limit_learn(target->gpu, device);
    ms_serve_see_to();
    if (device >= 0) {
        ms_driver_frees_settle(device); /* the driver counts it as free then */
        ms_mempool_count_idle(device);
    }
    *status_p = (int)((meminfo_func_t)target->real)(free_p, total_p);
    if (*status_p == 0)
        ms_neighbours_tell_free(device, ms_host_floor_free(device, *free_p));
    if (*status_p == 0 && device >= 0 && adjusts_meminfo()) {
        uint64_t idle = ms_serve_is_on() ? ms_pool_reclaimable(device) + ms_stream_reclaimable(device) : 0;
        adjust(device, idle + ms_mempool_idle_counted(device), free_p, total_p);
    }
    ms_hook_scope_leave(&scope);
    return true;
}

typedef int (*meminfo_of_func_t)(int, size_t *, size_t *);

/* The handles that wait to be used again are free to the program. */
bool ms_answer_MEMINFO_OF(const struct ms_target *target, const struct ms_args *args, int *status_p)
{
    size_t *free_p = (size_t *)(uintptr_t)args->out, *total_p = (size_t *)(uintptr_t)args->pitch;
    struct ms_hook_scope scope;
    uint64_t context;
    int device;

    if (!free_p || !total_p || !adjusts_meminfo() || !answers_meminfo())
        return false;
    ms_hook_scope_enter(&scope);
    device = ms_gpu_current(target->gpu, &context);
    ms_limit_learn(target->gpu, device);
    *status_p = ((meminfo_of_func_t)target->real)((int)args->flags, free_p, total_p);
    if (*status_p == 0 && device >= 0)
        adjust(device, ms_recycled_bytes(device), free_p, total_p);
    ms_hook_scope_leave(&scope);
    return true;
}
