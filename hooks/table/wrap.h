/* wrap.h - what a row of a .def file becomes: a body, an exported symbol, MS_WRAPPER_SLOTS wrappers, and its
 * row of facts.
 *
 * Included once by the .c file of each interface, before its rows. */
#ifndef MS_HOOKS_TABLE_WRAP_H
#define MS_HOOKS_TABLE_WRAP_H

#include "hooks/serve/answer.h"
#include "hooks/follow/buffers.h"
#include "hooks/follow/communicators.h"
#include "hooks/dispatch.h"
#include "hooks/follow/graph_memory.h"
#include "hooks/follow/ipc.h"
#include "hooks/lookup/listeners.h"
#include "hooks/table/name.h"
#include "hooks/follow/no_memory.h"
#include "hooks/observe/inner.h"
#include "hooks/observe/phases.h"
#include "hooks/lookup/resolve.h"
#include "hooks/serve/runtime.h"
#include "hooks/serve/serve.h"
#include "hooks/follow/uses.h"
#include "hooks/follow/watch.h"
#include "pool/stream/stream.h"
#include "quota/quota.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/acl.h"
#include "vendor/abi/nccl.h"
#include "vendor/abi/nvml.h"
#include "vendor/abi/cupti.h"
#include "vendor/abi/pytorch.h"
#include "vendor/abi/roctx.h"
#include "vendor/hip.h"

/* handed on, never looked into */
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st CUDA_GRAPH_INSTANTIATE_PARAMS;

/* Macros for what a row says of its arguments. */
#define MS_IS_ALLOC_NODE_HIP(params) ((params) && (params)->type == hipGraphNodeTypeMemAlloc)
#define MS_IS_ALLOC_NODE(params)     ((params) && (params)->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
#define MS_ARRAY_BYTES_2D(d)                                                                                 \
    ((d) ? ms_gpu_array_bytes((d)->Width, (d)->Height, 0, (d)->Format, (d)->NumChannels, 1) : 0)
#define MS_ARRAY_BYTES_3D(d, levels)                                                                         \
    ((d) ? ms_gpu_array_bytes((d)->Width, (d)->Height, (d)->Depth, (d)->Format, (d)->NumChannels, (levels))  \
         : 0)
#define MS_LOCATION_DEVICE_HIP(prop)                                                                         \
    ((prop) && (prop)->location.type == hipMemLocationTypeDevice                                             \
         ? ms_device_number(MS_MAKER_HIP, (prop)->location.id)                                               \
         : MS_DEVICE_NONE)
#define MS_LOCATION_DEVICE(prop)                                                                             \
    ((prop) && (prop)->location.type == CU_MEM_LOCATION_TYPE_DEVICE                                          \
         ? ms_device_number(MS_MAKER_CUDA, (prop)->location.id)                                              \
         : MS_DEVICE_NONE)
#define MS_LOCATION_KIND(prop)                                                                               \
    ((prop) && (prop)->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? MS_KIND_HANDLE : MS_KIND_PINNED)
#define MS_ACL_IS_DEVICE(prop) ((prop) && (prop)->location.type == ACL_MEM_LOCATION_TYPE_DEVICE)
#define MS_ACL_DEVICE(prop)                                                                                  \
    (MS_ACL_IS_DEVICE(prop) ? ms_device_number(MS_MAKER_ACL, (int)(prop)->location.id) : MS_DEVICE_NONE)
#define MS_ACL_KIND(prop) (MS_ACL_IS_DEVICE(prop) ? MS_KIND_HANDLE : MS_KIND_PINNED)
/* Pages are 2 MiB, or 1 GiB. */
#define MS_ACL_PAGE(attr)                                                                                    \
    ((attr) == ACL_HBM_MEM_HUGE1G || (attr) == ACL_MEM_HUGE1G || (attr) == ACL_MEM_P2P_HUGE1G ? 1u << 30     \
                                                                                              : 2u << 20)
/* The properties of a handle that may be recycled, packed; 0 for what the vendor alone understands, or rounds
 * up. */
#define MS_ACL_WHAT(prop, size, flags)                                                                       \
    (MS_ACL_IS_DEVICE(prop) && !(flags) && (size) % MS_ACL_PAGE((prop)->memAttr) == 0 &&                     \
             (prop)->handleType == ACL_MEM_HANDLE_TYPE_NONE &&                                               \
             (prop)->allocationType == ACL_MEM_ALLOCATION_TYPE_PINNED && !(prop)->reserve                    \
         ? UINT64_C(1) << 32 | (uint32_t)(prop)->memAttr                                                     \
         : 0)
#define MS_NAME_HASH(name) ((name) ? ms_hash_text(name) : 0)
/* In a per-thread twin, stream 0 is the stream that others call 2. */
#define MS_STREAM_PTSZ(stream) ((stream) ? (uintptr_t)(stream) : 2)
#define MS_FLAGS_PTSZ(flags)   ((flags) ? (flags) : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
#define MS_VERSION_OF_RUNTIME  0 /* the runtime knows its own version, we do not */

/* Without a real function: what the interface says of a machine without a driver. */
#define MS_ABSENT_CUresult         CUDA_ERROR_NO_DEVICE
#define MS_ABSENT_cudaError_t      cudaErrorInsufficientDriver
#define MS_ABSENT_hipError_t       hipErrorNoDevice
#define MS_ABSENT_aclError         ACL_ERROR_RT_NO_DEVICE
#define MS_ABSENT_ncclResult_t     ncclUnhandledCudaError
#define MS_ABSENT_CUptiResult      CUPTI_ERROR_NOT_INITIALIZED
#define MS_ABSENT_nvmlReturn_t     NVML_ERROR_LIBRARY_NOT_FOUND
#define MS_ABSENT_roctx_range_id_t 0
#define MS_ABSENT_int              -1
#define MS_ABSENT_void             (void)0

#define MS_STRIP(...)                                   __VA_ARGS__
#define MS_LOOKUP_NAME(name, version, per_thread)       (name)
#define MS_LOOKUP_VERSION(name, version, per_thread)    (version)
#define MS_LOOKUP_PER_THREAD(name, version, per_thread) (per_thread)

/* The shape that a class gives its rows (classes.def). */
#include "hooks/table/classes.def"
#define MS_SHAPE(cls) MS_SHAPE_##cls

/* Who is asked before the vendor, and before there is a frame. A row that is followed asks nobody, nor does
 * one whose class answers in its frame. */
#define ms_serve_BUFFER_ALLOC     ms_serve_nothing
#define ms_serve_BUFFER_FREE      ms_serve_nothing
#define ms_serve_RECYCLED_CREATE  ms_serve_nothing
#define ms_serve_RECYCLED_RELEASE ms_serve_nothing
#define MS_FIRST_SERVED(cls)      ms_serve_##cls
#define MS_FIRST_FOLLOWED(cls)    ms_serve_nothing

/* The thread's last error, of an interface whose .c file says MS_KEEPS_ERROR: what the program would have
 * found there. */
#ifdef MS_KEEPS_ERROR
#define MS_ERROR_BEFORE(gpu)                  ms_gpu_error_before(gpu)
#define MS_ERROR_REWIND(gpu, error)           ms_gpu_error_rewind(gpu, error)
#define MS_ERROR_NOW(gpu)                     ms_gpu_error_peek(gpu)
#define MS_ERROR_BACK(gpu, error)             ms_gpu_error_restore(gpu, error)
#define MS_ERROR_ANSWERED(gpu, error, status) ms_gpu_error_answered(gpu, error, status)
#define MS_ERROR_HIT(row)                     (ms_gpu_error_hit(ms_kept_site(row)->driver), true)
#else
#define MS_ERROR_BEFORE(gpu)                  0
#define MS_ERROR_REWIND(gpu, error)           (void)(error)
#define MS_ERROR_NOW(gpu)                     0
#define MS_ERROR_BACK(gpu, error)             (void)(error)
#define MS_ERROR_ANSWERED(gpu, error, status) (void)(error)
#define MS_ERROR_HIT(row)                     true
#endif

/* Rows of which a thread keeps its latest call site, and that may be hits, say of which kind (`.hit`): those
 * of CUDA's runtime (MS_BODY_NAME), and those that are served in the one hook that an interface has, whose .c
 * file says MS_ONE_HOOK. The others are none. */
#define MS_NO_HITS(fn)                                                                                       \
    enum { MS_KEEPS_SITE_##fn = false };                                                                     \
    static inline bool hits_##fn(const struct ms_target *target, ...)                                        \
    {                                                                                                        \
        return target && false;                                                                              \
    }

/* Which of the two a class may be. */
#define MS_HIT_CHOSEN(...)                MS_HIT_SECOND(__VA_ARGS__)
#define MS_HIT_SECOND(first, second, ...) second
#define MS_HIT_BY_NAME_ALLOC              , ms_hit_alloc
#define MS_HIT_BY_NAME                    , ms_hit_free
#define MS_HIT_BY_ALLOC                   , ms_hit_alloc
#define MS_HIT_BY_ALLOC_ASYNC             , ms_hit_alloc
#define MS_HIT_BY_FREE                    , ms_hit_free
#define MS_HIT_BY_FREE_ASYNC              , ms_hit_free
#define MS_HIT_OF(cls)                    MS_HIT_CHOSEN(MS_HIT_BY_##cls, ms_hit_none, )

#define MS_HITS(fn, cls, declared, ...)                                                                      \
    enum { MS_KEEPS_SITE_##fn = true };                                                                      \
    _Pragma("GCC diagnostic push")                                                                           \
        _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"") static MS_INLINE bool hits_##fn declared    \
    {                                                                                                        \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        return ms_args_.hit && MS_HIT_OF(cls)(MS_ROW_##fn, ms_frame_, ms_caller_, &ms_args_) &&              \
               MS_ERROR_HIT(MS_ROW_##fn);                                                                    \
    }                                                                                                        \
    _Pragma("GCC diagnostic pop")
#ifdef MS_ONE_HOOK
#define MS_HITS_SERVED(fn, cls, declared, ...) MS_HITS(fn, cls, declared, __VA_ARGS__)
#else
#define MS_HITS_SERVED(fn, cls, declared, ...) MS_NO_HITS(fn)
#endif
#define MS_HITS_FOLLOWED(fn, cls, declared, ...) MS_NO_HITS(fn)

#define MS_BODY_FRAME(result, fn, cls, outc, declared, types, passed, forwarded, ...)                        \
    MS_HITS_##outc(fn, cls, declared, __VA_ARGS__) static MS_NOINLINE result body_##fn declared              \
    {                                                                                                        \
        int ms_error_ = MS_ERROR_BEFORE(ms_target_->gpu), ms_later_, ms_answer_;                             \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        struct ms_call ms_call_;                                                                             \
        uint64_t ms_word_ = MS_KEEPS_SITE_##fn ? ms_slow_path_now() : 0;                                     \
        result ms_status_;                                                                                   \
        if (MS_FIRST_##outc(cls)(MS_ROW_##fn, ms_target_, ms_frame_, ms_caller_, &ms_args_, &ms_answer_)) {  \
            if (MS_KEEPS_SITE_##fn && ms_args_.hit && ms_answer_ == 0)                                       \
                ms_hit_answered(MS_ROW_##fn, ms_target_, ms_target_->gpu, &ms_args_, ms_word_);              \
            MS_ERROR_ANSWERED(ms_target_->gpu, ms_error_, ms_answer_);                                       \
            return (result)ms_answer_;                                                                       \
        }                                                                                                    \
        ms_call_.args = ms_args_;                                                                            \
        ms_call_init(&ms_call_, MS_ROW_##fn, ms_frame_, ms_caller_, ms_target_);                             \
        ms_call_begin(&ms_call_);                                                                            \
        MS_ERROR_REWIND(ms_target_->gpu, ms_error_);                                                         \
        ms_status_ =                                                                                         \
            ms_call_.answered ? (result)ms_call_.status : ((result(*) types)ms_target_->real)passed;         \
        ms_later_ = MS_ERROR_NOW(ms_target_->gpu);                                                           \
        for (struct ms_room ms_room_ = {0};                                                                  \
             MS_UNLIKELY((int)ms_status_ != 0) && !ms_call_.answered &&                                      \
             ms_is_no_memory(MS_FAMILY, (int)ms_status_) &&                                                  \
             ms_serve_make_room(MS_ROW_##fn, ms_target_->gpu, &ms_call_.args, &ms_room_);) {                 \
            ms_status_ = ((result(*) types)ms_target_->real)passed;                                          \
            ms_later_ = MS_ERROR_NOW(ms_target_->gpu);                                                       \
        }                                                                                                    \
        ms_status_ = (result)ms_ipc_turned(&ms_call_, (int)ms_status_);                                      \
        ms_call_end(&ms_call_, (int)ms_status_);                                                             \
        if (ms_call_.answered)                                                                               \
            MS_ERROR_ANSWERED(ms_target_->gpu, ms_error_, (int)ms_status_);                                  \
        else                                                                                                 \
            MS_ERROR_BACK(ms_target_->gpu, ms_later_);                                                       \
        return ms_status_;                                                                                   \
    }

/* Of the interfaces that end in the driver's, which records. A row that may be a hit (`.hit`) is asked first
 * whether it is served here. The rest is a function of its own: to make room for its frame takes a third of
 * an answer. */
#define MS_TAKES_STACK_NAME       false
#define MS_TAKES_STACK_NAME_ALLOC true
#define MS_BODY_NAME(result, fn, cls, outc, declared, types, passed, forwarded, ...)                         \
    _Static_assert(MS_FAMILY == MS_API_CUDA_RUNTIME || MS_FAMILY == MS_API_NCCL,                             \
                   #fn " would have to record");                                                             \
    MS_HITS(fn, cls, declared, __VA_ARGS__)                                                                  \
    static MS_NOINLINE result whole_##fn declared                                                            \
    {                                                                                                        \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        struct ms_call ms_call_;                                                                             \
        result ms_status_;                                                                                   \
        ms_call_init(&ms_call_, MS_ROW_##fn, ms_frame_, ms_caller_, ms_target_);                             \
        ms_name_begin(&ms_call_, MS_TAKES_STACK_##cls);                                                      \
        if (ms_args_.key)                                                                                    \
            ms_serve_expect_free(ms_args_.key);                                                              \
        ms_status_ = ((result(*) types)ms_target_->real)passed;                                              \
        ms_name_end(&ms_call_, (int)ms_status_);                                                             \
        if (ms_args_.hit && ms_args_.out && ms_status_ == 0 && ms_call_.served &&                            \
            !ms_runtime_knows(ms_args_.hit, ms_target_))                                                     \
            ms_runtime_learn(ms_args_.hit, ms_target_, ms_call_.driver);                                     \
        return ms_status_;                                                                                   \
    }                                                                                                        \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        int ms_answer_;                                                                                      \
        if (MS_FIRST_##outc(cls)(MS_ROW_##fn, ms_target_, ms_frame_, ms_caller_, &ms_args_, &ms_answer_))    \
            return (result)ms_answer_;                                                                       \
        return whole_##fn forwarded;                                                                         \
    }

/* How many begin is `height`, which rank of how many `given` of `bytes`. */
#define MS_BODY_COMMUNICATOR(result, fn, cls, outc, declared, types, passed, forwarded, ...)                 \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        struct ms_call ms_call_;                                                                             \
        result ms_status_;                                                                                   \
        ms_call_init(&ms_call_, MS_ROW_##fn, ms_frame_, ms_caller_, ms_target_);                             \
        ms_name_begin(&ms_call_, true);                                                                      \
        ms_communicators_begin(&ms_call_, (int)ms_args_.height, (int)ms_args_.given, (int)ms_args_.bytes);   \
        ms_status_ = ((result(*) types)ms_target_->real)passed;                                              \
        ms_name_end(&ms_call_, (int)ms_status_);                                                             \
        return ms_status_;                                                                                   \
    }

/* Noted wherever the call comes from, our own code included: without a frame, and before the vendor hears of
 * it. */
#define MS_BODY_LISTEN(result, fn, cls, outc, declared, types, passed, forwarded, ...)                       \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        (void)ms_frame_, (void)ms_caller_;                                                                   \
        ms_listener_came();                                                                                  \
        return ((result(*) types)ms_target_->real)passed;                                                    \
    }

/* A phase is told of before the vendor hears of it, or with the vendor's answer. */
#define MS_BODY_TELL(result, fn, cls, outc, declared, types, passed, forwarded, ...)                         \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        (void)ms_frame_, (void)ms_caller_;                                                                   \
        ms_phase_tell(MS_CLASS_##cls, &ms_args_, 0);                                                         \
        return ((result(*) types)ms_target_->real)passed;                                                    \
    }

#define MS_BODY_TELL_ANSWER(result, fn, cls, outc, declared, types, passed, forwarded, ...)                  \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        result ms_answer_ = ((result(*) types)ms_target_->real)passed;                                       \
        (void)ms_frame_, (void)ms_caller_;                                                                   \
        ms_phase_tell(MS_CLASS_##cls, &ms_args_, ms_answer_);                                                \
        return ms_answer_;                                                                                   \
    }

/* An allocator's report is taken before it reaches whom it is for. */
#define MS_BODY_INNER(result, fn, cls, outc, declared, types, passed, forwarded, ...)                        \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        const struct ms_inner_report ms_report_ = {__VA_ARGS__};                                             \
        (ms_report_.is_refused ? ms_no_memory_inner : ms_inner_reported)(MS_ROW_##fn, &ms_report_,           \
                                                                         ms_frame_, ms_caller_);             \
        return ((result(*) types)ms_target_->real)passed;                                                    \
    }

/* Memory that the vendor has read may be read by us: what a call uses is looked at after the call. */
#define MS_USING(name, result, fn, declared, types, passed, ...)                                             \
    static MS_NOINLINE result name##_##fn declared                                                           \
    {                                                                                                        \
        const struct ms_use_call ms_call_ = {MS_ROW_##fn, ms_use_begins(), ms_frame_, ms_caller_};           \
        result ms_status_ = ((result(*) types)ms_target_->real)passed;                                       \
        if (ms_use_is_wanted((int)ms_status_)) {                                                             \
            const struct ms_use ms_use_ = {__VA_ARGS__};                                                     \
            ms_use_told(ms_target_, &ms_use_, &ms_call_);                                                    \
        }                                                                                                    \
        return ms_status_;                                                                                   \
    }
#define MS_BODY_USE(result, fn, cls, outc, declared, types, passed, forwarded, ...)                          \
    MS_NO_HITS(fn)                                                                                           \
    MS_USING(body, result, fn, declared, types, passed, __VA_ARGS__)

/* For want of memory the vendor is asked again, as long as memory that the pool keeps goes back to it. */
#define MS_AGAIN(result, fn, types, passed)                                                                  \
    for (struct ms_room ms_room_ = {0};                                                                      \
         MS_UNLIKELY((int)ms_status_ != 0) && ms_is_no_memory(MS_FAMILY, (int)ms_status_) &&                 \
         ms_serve_make_room(MS_ROW_##fn, ms_target_->gpu, &ms_args_, &ms_room_);)                            \
        ms_status_ = ((result(*) types)ms_target_->real)passed;

/* No frame: a comparison behind the vendor's function is all there is to it. The call is a part of the
 * wrapper, so that its arguments are not handed on twice. */
#define MS_BODY_STATUS(result, fn, cls, outc, declared, types, passed, forwarded, ...)                       \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE void refused_##fn(const struct ms_target *target, int status,                         \
                                         const struct ms_args *args, const void *frame, const void *caller)  \
    {                                                                                                        \
        int ms_error_ = MS_ERROR_NOW(target->gpu);                                                           \
        ms_no_memory_look(MS_ROW_##fn, status, target->gpu, args, frame, caller);                            \
        MS_ERROR_BACK(target->gpu, ms_error_);                                                               \
    }                                                                                                        \
    static MS_INLINE result body_##fn declared                                                               \
    {                                                                                                        \
        result ms_status_ = ((result(*) types)ms_target_->real)passed;                                       \
        if (MS_UNLIKELY((int)ms_status_ != 0)) {                                                             \
            const struct ms_args ms_args_ = {__VA_ARGS__};                                                   \
            MS_AGAIN(result, fn, types, passed)                                                              \
            refused_##fn(ms_target_, (int)ms_status_, &ms_args_, ms_frame_, ms_caller_);                     \
        }                                                                                                    \
        return ms_status_;                                                                                   \
    }

/* A status, and where uses are noted, of what the vendor has read. All that is rare is a function of its own,
 * so that the frame of the others is small. */
#define MS_BODY_LAUNCH(result, fn, cls, outc, declared, types, passed, forwarded, ...)                       \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result refused_##fn(result ms_status_, MS_STRIP declared)                             \
    {                                                                                                        \
        const struct ms_use ms_use_ = {__VA_ARGS__};                                                         \
        const struct ms_args ms_args_ = {.asked = ms_use_.asked};                                            \
        MS_AGAIN(result, fn, types, passed)                                                                  \
        int ms_error_ = MS_ERROR_NOW(ms_target_->gpu);                                                       \
        ms_no_memory_look(MS_ROW_##fn, (int)ms_status_, ms_target_->gpu, &ms_args_, ms_frame_, ms_caller_);  \
        MS_ERROR_BACK(ms_target_->gpu, ms_error_);                                                           \
        if (ms_use_is_wanted((int)ms_status_))                                                               \
            ms_use_told(ms_target_, &ms_use_, NULL);                                                         \
        return ms_status_;                                                                                   \
    }                                                                                                        \
    MS_USING(used, result, fn, declared, types, passed, __VA_ARGS__)                                         \
    static MS_INLINE result launched_##fn declared                                                           \
    {                                                                                                        \
        result ms_status_ =                                                                                  \
            MS_UNLIKELY(ms_uses_wanted()) ? used_##fn forwarded : ((result(*) types)ms_target_->real)passed; \
        if (MS_UNLIKELY((int)ms_status_ != 0))                                                               \
            return refused_##fn(ms_status_, MS_STRIP forwarded);                                             \
        const struct ms_use ms_use_ = {__VA_ARGS__};                                                         \
        if (ms_use_.launches_graph)                                                                          \
            ms_graph_memory_launched(ms_use_.exec);                                                          \
        return ms_status_;                                                                                   \
    }                                                                                                        \
    static MS_INLINE result body_##fn declared                                                               \
    {                                                                                                        \
        const struct ms_use ms_use_ = {__VA_ARGS__};                                                         \
        struct ms_graph_launch ms_launch_;                                                                   \
        if (MS_LIKELY(!ms_use_.launches_graph || !ms_quota_is_bounded()))                                    \
            return launched_##fn forwarded;                                                                  \
        int ms_error_ = MS_ERROR_BEFORE(ms_target_->gpu);                                                    \
        result ms_status_ = (result)ms_families[MS_FAMILY].no_memory[0];                                     \
        if (!ms_graph_memory_launch_begins(MS_ROW_##fn, ms_target_->gpu, ms_use_.exec, ms_frame_,            \
                                           ms_caller_, &ms_launch_)) {                                       \
            MS_ERROR_ANSWERED(ms_target_->gpu, ms_error_, (int)ms_status_);                                  \
            return ms_status_;                                                                               \
        }                                                                                                    \
        MS_ERROR_REWIND(ms_target_->gpu, ms_error_);                                                         \
        ms_status_ = launched_##fn forwarded;                                                                \
        ms_error_ = MS_ERROR_NOW(ms_target_->gpu);                                                           \
        ms_graph_memory_launch_ends((int)ms_status_, &ms_launch_);                                           \
        MS_ERROR_BACK(ms_target_->gpu, ms_error_);                                                           \
        return ms_status_;                                                                                   \
    }

#define MS_BODY_ASK(result, fn, cls, outc, declared, types, passed, forwarded, ...)                          \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        int ms_error_ = MS_ERROR_BEFORE(ms_target_->gpu);                                                    \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        int ms_answer_;                                                                                      \
        if (ms_answer_##cls(ms_target_, &ms_args_, &ms_answer_)) {                                           \
            MS_ERROR_ANSWERED(ms_target_->gpu, ms_error_, ms_answer_);                                       \
            return (result)ms_answer_;                                                                       \
        }                                                                                                    \
        result ms_status_ = ((result(*) types)ms_target_->real)passed;                                       \
        if (MS_UNLIKELY((int)ms_status_ != 0)) {                                                             \
            ms_error_ = MS_ERROR_NOW(ms_target_->gpu);                                                       \
            ms_no_memory_look(MS_ROW_##fn, (int)ms_status_, ms_target_->gpu, &ms_args_, ms_frame_,           \
                              ms_caller_);                                                                   \
            MS_ERROR_BACK(ms_target_->gpu, ms_error_);                                                       \
        }                                                                                                    \
        return ms_status_;                                                                                   \
    }

#define MS_BODY_WATCH(result, fn, cls, outc, declared, types, passed, forwarded, ...)                        \
    MS_NO_HITS(fn)                                                                                           \
    static MS_NOINLINE result body_##fn declared                                                             \
    {                                                                                                        \
        int ms_error_ = MS_ERROR_BEFORE(ms_target_->gpu);                                                    \
        const struct ms_args ms_args_ = {__VA_ARGS__};                                                       \
        struct ms_watch ms_watch_;                                                                           \
        result ms_status_;                                                                                   \
        ms_watch_begin(&ms_watch_, MS_CLASS_##cls, ms_target_->gpu, &ms_args_);                              \
        MS_ERROR_REWIND(ms_target_->gpu, ms_error_);                                                         \
        ms_status_ = ((result(*) types)ms_target_->real)passed;                                              \
        MS_AGAIN(result, fn, types, passed)                                                                  \
        ms_error_ = MS_ERROR_NOW(ms_target_->gpu);                                                           \
        ms_watch_end(&ms_watch_, (int)ms_status_, MS_ROW_##fn, ms_frame_, ms_caller_);                       \
        MS_ERROR_BACK(ms_target_->gpu, ms_error_);                                                           \
        return ms_status_;                                                                                   \
    }

/* Behind an exported symbol that was no hit: a function of its own, and who called is asked for once more, so
 * that a hit keeps neither in a register. What has no frame is a part of the exported function. */
#define MS_REACHED_CHOSEN(...)                MS_REACHED_SECOND(__VA_ARGS__)
#define MS_REACHED_SECOND(first, second, ...) second
#define MS_REACHED_BY_STATUS                  , MS_INLINE
#define MS_REACHED_BY_LAUNCH                  , MS_INLINE
#define MS_REACHED(result, fn, cls, params, forwarded)                                                       \
    static MS_REACHED_CHOSEN(MS_REACHED_BY_##cls, MS_NOINLINE, ) result reached_##fn params                  \
    {                                                                                                        \
        const struct ms_target ms_found_ = MS_KEEPS_SITE_##fn                                                \
                                               ? ms_resolve_kept(MS_ROW_##fn, ms_caller_, ms_node_)          \
                                               : ms_resolve_exported(MS_ROW_##fn, ms_caller_, ms_node_);     \
        const struct ms_target *ms_target_ = &ms_found_;                                                     \
        return ms_found_.real ? body_##fn forwarded : MS_ABSENT_##result;                                    \
    }

/* A frame that a walk begins at stays where it is until the call is over: it ends in no tail call. */
static inline void ms_stay(const char *unused)
{
    (void)unused;
    __asm__ volatile("");
}

#define MS_EXPORTED(result, fn, params, forwarded, reached, name, node)                                      \
    MS_EXPORT result name params;                                                                            \
    MS_EXPORT result name params                                                                             \
    {                                                                                                        \
        const void *ms_caller_ = __builtin_return_address(0), *ms_frame_ = __builtin_frame_address(0);       \
        const struct ms_target *ms_target_ = NULL;                                                           \
        const enum ms_version_node ms_node_ = node;                                                          \
        if (MS_KEEPS_SITE_##fn && ms_resolve_keeps(MS_ROW_##fn, ms_caller_, ms_node_) &&                     \
            ms_hit_may_be_fast(MS_ROW_##fn) && hits_##fn forwarded)                                          \
            return (result)0;                                                                                \
        const char ms_stays_ __attribute__((cleanup(ms_stay), unused)) = 0;                                  \
        ms_caller_ = __builtin_return_address(0);                                                            \
        ms_frame_ = __builtin_frame_address(0);                                                              \
        return reached_##fn reached;                                                                         \
    }

/* How a row is exported, of an interface whose .c file does not say it before: at no version. */
#ifndef MS_EXPORTS
#define MS_EXPORTS(result, fn, params, forwarded, reached)                                                   \
    MS_EXPORTED(result, fn, params, forwarded, reached, fn, MS_NODE_NONE)
#endif

/* The function under one version node; libmemshim.map hides the name that the compiler sees. */
#define MS_SYMVER(name, version) __asm__(".symver " name "," version)
#define MS_EXPORTED_AT(tag, version, result, fn, params, forwarded, reached)                                 \
    MS_EXPORTED(result, fn, params, forwarded, reached, ms_at_##tag##_##fn, MS_NODE_##tag)                   \
    MS_SYMVER("ms_at_" #tag "_" #fn, #fn "@" version);

#define MS_WRAPPER(result, fn, params, forwarded, slot)                                                      \
    static result wrapper##slot##_##fn params                                                                \
    {                                                                                                        \
        const void *ms_caller_ = __builtin_return_address(0), *ms_frame_ = __builtin_frame_address(0);       \
        const struct ms_target *ms_target_ = ms_wrapper_slot_target(MS_ROW_##fn, slot);                      \
        if (MS_KEEPS_SITE_##fn && ms_resolve_kept_is(MS_ROW_##fn, ms_target_) &&                             \
            ms_hit_may_be_fast(MS_ROW_##fn) && hits_##fn forwarded)                                          \
            return (result)0;                                                                                \
        const char ms_stays_ __attribute__((cleanup(ms_stay), unused)) = 0;                                  \
        return body_##fn forwarded;                                                                          \
    }

#define MS_FACTS(fn, cls, outc, look, family)                                                                \
    static void *const wrappers_##fn[MS_WRAPPER_SLOTS] = {(void *)wrapper0_##fn, (void *)wrapper1_##fn,      \
                                                          (void *)wrapper2_##fn, (void *)wrapper3_##fn};     \
    extern const struct ms_row_info ms_row_##fn;                                                             \
    const struct ms_row_info ms_row_##fn = {.symbol = #fn,                                                   \
                                            .lookup = MS_LOOKUP_NAME look,                                   \
                                            .version = MS_LOOKUP_VERSION look,                               \
                                            .per_thread = MS_LOOKUP_PER_THREAD look,                         \
                                            .api = family,                                                   \
                                            .class = MS_CLASS_##cls,                                         \
                                            .outcome = MS_OUTCOME_##outc,                                    \
                                            .wrappers = wrappers_##fn};

#define MS_ROW(family, result, fn, params, forwarded, reached, cls, outc, look)                              \
    MS_EXPORTS(result, fn, params, forwarded, reached)                                                       \
    MS_WRAPPER(result, fn, params, forwarded, 0)                                                             \
    MS_WRAPPER(result, fn, params, forwarded, 1)                                                             \
    MS_WRAPPER(result, fn, params, forwarded, 2)                                                             \
    MS_WRAPPER(result, fn, params, forwarded, 3)                                                             \
    MS_FACTS(fn, cls, outc, look, family)

#define MS_CONTEXT_PARAMS const struct ms_target *ms_target_, const void *ms_caller_, const void *ms_frame_
#define MS_CONTEXT_ARGS   ms_target_, ms_caller_, ms_frame_
#define MS_REACHED_PARAMS enum ms_version_node ms_node_, const void *ms_caller_, const void *ms_frame_
#define MS_REACHED_ARGS   ms_node_, ms_caller_, ms_frame_

#define MS_HOOK(result, fn, params, args, cls, outc, look, reason, ...)                                      \
    result fn params;                                                                                        \
    MS_SHAPE(cls)                                                                                            \
    (result, fn, cls, outc, (MS_CONTEXT_PARAMS, MS_STRIP params), params, args,                              \
     (MS_CONTEXT_ARGS, MS_STRIP args), __VA_ARGS__)                                                          \
        MS_REACHED(result, fn, cls, (MS_REACHED_PARAMS, MS_STRIP params), (MS_CONTEXT_ARGS, MS_STRIP args))  \
            MS_ROW(MS_FAMILY, result, fn, params, (MS_CONTEXT_ARGS, MS_STRIP args),                          \
                   (MS_REACHED_ARGS, MS_STRIP args), cls, outc, look)

#define MS_HOOK0(result, fn, cls, outc, look, reason, ...)                                                   \
    result fn(void);                                                                                         \
    MS_SHAPE(cls)                                                                                            \
    (result, fn, cls, outc, (MS_CONTEXT_PARAMS), (void), (), (MS_CONTEXT_ARGS), __VA_ARGS__)                 \
        MS_REACHED(result, fn, cls, (MS_REACHED_PARAMS), (MS_CONTEXT_ARGS))                                  \
            MS_ROW(MS_FAMILY, result, fn, (void), (MS_CONTEXT_ARGS), (MS_REACHED_ARGS), cls, outc, look)

#define MS_PASS(symbol, class, reason)

#endif
