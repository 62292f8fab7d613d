/* dispatch.h - one hooked call: what the wrapper knows of it, and what happens before and after the vendor's
 * function.
 *
 * A call frame lives on the stack of the wrapper. The outermost frame of a thread names the interface that
 * the program called and holds the call stack; frames nested in it record under that name. */
#ifndef MS_HOOKS_DISPATCH_H
#define MS_HOOKS_DISPATCH_H

#include "hooks/hook.h"
#include "hooks/hook_scope.h"
#include "record/live/ledger.h"

/** The arguments that matter, filled in by the row. Pointers are read only after the vendor's success. */
struct ms_args {
    const void *out;   /* where the vendor writes the pointer or handle */
    const void *pitch; /* where it writes the pitch; the block is pitch * height */
    uint64_t height;
    uint64_t width; /* in bytes, of a pitched block; its element's size is in `flags` */
    /* an address that the program chose itself, instead of `out`; or where width and `key`, rows of a layer,
     * are to be written of a pitched block */
    uint64_t given;
    uint64_t key;   /* what is freed, released, closed or mapped */
    uint64_t bytes; /* what is asked for */
    uint64_t stream;
    const char *name; /* of a lookup, */
    void **pfn;
    uint64_t flags;
    /* the wrapper's own parameter, which may be another for the vendor than for the program (ipc.h) */
    void *turned;
    int device;
    int version;    /* of a lookup */
    uint8_t kind;   /* enum ms_kind */
    uint8_t asked;  /* enum ms_asked, where that is not the kind's or the class's */
    uint8_t space;  /* enum ms_space */
    uint8_t hit;    /* enum ms_hit: of a call that may be one (hits.h) */
    bool out_is_32; /* `out` is of 4 bytes instead of 8 */
};

/* The mark of a frame between begin and end depends on what else the frame must still hold, so that one that
 * was left on the stack, and overwritten since but for its mark, is not taken for open. */
static inline uint64_t ms_call_mark(const void *frame, const void *caller)
{
    return 0x6d73ca116d73ca11u ^ (uintptr_t)frame ^ (uint64_t)(uintptr_t)caller << 1;
}

/** A moment at which nothing that may change what is in use of a device was under way, if `is_still`, and the
 * counts by which to tell whether anything has been since (balance.h). */
struct ms_stillness {
    uint64_t begun, changes; /* calls that had begun, changes of what the pool was charged with */
    bool is_still;           /* this thread's call was the only one under way */
};

/* The memory that a device had left before the vendor's function (footprints.h). */
struct ms_look {
    int device; /* MS_DEVICE_NONE: nothing is looked at */
    bool is_known;
    size_t left, total;
    uint64_t held;                      /* by this process */
    uint64_t others_least, others_most; /* what other processes say that they have, around the look */
    struct ms_stillness since;
};

struct ms_call {
    uint64_t open; /* ms_call_mark between begin and end */
    uint16_t row;
    bool passes;   /* not ours to look at: straight to the vendor */
    bool records;  /* the driver frame that speaks to the ledger */
    bool found;    /* a free found its block */
    bool served;   /* a call nested in it was answered from the pool, */
    bool answered; /* the vendor is not called, and the program gets `status` */
    bool is_node;  /* a free became a node of a graph */
    bool told;     /* of an outermost frame: that there was no memory is remembered (no_memory.h) */
    struct ms_hook_scope scope;
    ms_stack_id stack; /* of an outermost frame whose class takes it */
    const void *frame; /* of the wrapper, and the address it returns to */
    const void *caller;
    const struct ms_gpu *gpu;
    void *real;                  /* the vendor's function */
    const struct ms_gpu *driver; /* if `served`: the driver in whose hook it was answered */
    struct ms_args args;
    uint64_t bytes; /* recorded under this frame so far */
    union {
        struct ms_block block; /* of a free, between before and after */
        struct ms_look look;   /* of what makes a context or loads a module, likewise */
    };
    void *object; /* handles.c, imports.c: likewise */
    void *ipc;    /* ipc_import.c: likewise */
    int status;
    int left_recording; /* of an outermost frame: what the thread's flag and pointer were, if not empty */
    struct ms_call *left;
};

/** All but the arguments, and but what is only there once it was filled in: a tenth of the structure. */
static inline void ms_call_init(struct ms_call *call, unsigned row, const void *frame, const void *caller,
                                const struct ms_target *target)
{
    call->row = (uint16_t)row;
    call->passes = call->records = call->found = call->served = call->told = call->is_node = false;
    call->frame = frame;
    call->caller = caller;
    call->gpu = target->gpu;
    call->real = target->real;
    call->stack = 0;
    call->bytes = 0;
    call->object = call->ipc = NULL;
    call->answered = false;
    call->open = ms_call_mark(frame, caller);
    call->left = NULL;
}

/* True if the wrapper that made `call` still stands on the stack: its return address lies there. Who calls
 * from the place that it was unwound to has overwritten it. Elsewhere return addresses may be signed.
 * AddressSanitizer takes the slot for nobody's. */
__attribute__((no_sanitize("address"))) static inline bool ms_call_stands(const struct ms_call *call)
{
#ifdef __x86_64__
    return ((const void *const *)call->frame)[1] == call->caller;
#else
    (void)call;
    return true;
#endif
}

/** The outermost call of this thread that is going on below the stack frame `frame`, or NULL. What a thread
 * leaves behind that is cancelled or unwound out of the vendor's function is none: it lies where the stack
 * has ended, or was overwritten since. */
static inline struct ms_call *ms_call_around(const void *frame)
{
    struct ms_call *outer = ms_thread.outermost;

    if (MS_LIKELY(!outer) || (uintptr_t)outer <= (uintptr_t)frame ||
        outer->open != ms_call_mark(outer->frame, outer->caller) || !ms_call_stands(outer))
        return NULL;
    return outer;
}

/** Before the vendor's function: closes the guard for its own work, takes the stack, takes freed blocks
 * out. */
void ms_call_begin(struct ms_call *call);

/** After it: records, puts back, wraps looked-up pointers. `status` is the vendor's, 0 for success. */
void ms_call_end(struct ms_call *call, int status);

/** Build the block that `call` made at `key` and tell the ledger, under the outermost frame's name. */
void ms_call_record(struct ms_call *call, enum ms_space space, uint64_t key, uint64_t bytes, int device);

/** The call stack of an outermost frame for a block of `bytes`: taken already, or now where stacks are
 * sampled. */
ms_stack_id ms_call_stack_sampled(struct ms_call *outer, uint64_t bytes);
static inline ms_stack_id ms_call_stack(struct ms_call *outer, uint64_t bytes)
{
    return MS_UNLIKELY(ms_stack_sampling()) ? ms_call_stack_sampled(outer, bytes) : outer->stack;
}
/** The record learns what the device is, once. */
void ms_call_describe_device(const struct ms_gpu *gpu, int device);

/* handles.c: what is counted by reference, physical memory behind VMM handles. */
void ms_handle_created(struct ms_call *call);
void ms_handle_retained(struct ms_call *call);
void ms_handle_release_begin(struct ms_call *call);
void ms_handle_release_end(struct ms_call *call, int status);
void ms_handle_map_begin(struct ms_call *call);
void ms_handle_map_end(struct ms_call *call, int status);
void ms_handle_unmap_begin(struct ms_call *call);
void ms_handle_unmap_end(struct ms_call *call, int status);
/** Which memory is mapped at `address`, or was there last: its number in the record, and where its mapping
 * begins. False if that is not known. `*mapped_p`: it is mapped there now. */
bool ms_handle_at(uint64_t address, uint64_t *number_p, uint64_t *begin_p, bool *mapped_p);
/** Mappings that lie side by side are one stretch of memory: where the one at `address` begins, the number of
 * what it maps, and where the last of them ends. False if nothing is mapped there, or not all is known. */
bool ms_handle_span(uint64_t address, uint64_t *number_p, uint64_t *begin_p, uint64_t *end_p);
/** The vendor, or who answers for it, refused to release call->args.key. */
void ms_handle_release_refused(const struct ms_call *call);

/* imports.c: other processes' memory, which may be opened more than once. */
void ms_import_opened(struct ms_call *call);
/** True if the memory that is being freed, closed or unmapped at call->args.key is an import. Its record is
 * taken off; `end` puts it back if the vendor refused. Where nothing is open it costs a look at a counter. */
bool ms_import_close_begin(struct ms_call *call);
void ms_import_close_end(struct ms_call *call, int status);
void ms_imports_context_ended(uint64_t context);

#endif
