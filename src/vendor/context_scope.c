/* context_scope.c - see context_scope.h. */
#include "vendor/context_scope.h"

_Atomic int ms_open_captures;
_Atomic uint32_t ms_captures_unseen;

void ms_context_scope_begin(struct ms_context_scope *visit, const struct ms_gpu *gpu, uint64_t context)
{
    CUcontext current = NULL;

    visit->gpu = gpu;
    visit->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    visit->pushed = false;
    if (gpu->exchange_capture_mode)
        gpu->exchange_capture_mode(&visit->mode);
    if (!context || (gpu->ctx_get_current && gpu->ctx_get_current(&current) == CUDA_SUCCESS &&
                     (uintptr_t)current == context))
        return;
    visit->pushed = gpu->ctx_push && gpu->ctx_push((CUcontext)(uintptr_t)context) == CUDA_SUCCESS;
}

void ms_context_scope_end(struct ms_context_scope *visit)
{
    CUcontext ours;

    if (visit->pushed && visit->gpu->ctx_pop)
        visit->gpu->ctx_pop(&ours);
    if (visit->gpu->exchange_capture_mode && visit->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        visit->gpu->exchange_capture_mode(&visit->mode);
}

bool ms_gpu_captures(const struct ms_gpu *gpu, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return !gpu->stream_is_capturing ||
           gpu->stream_is_capturing(ms_gpu_stream(gpu, stream), &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool ms_gpu_stream_id(const struct ms_gpu *gpu, CUstream stream, unsigned long long *id_p)
{
    return gpu->stream_get_id && !ms_gpu_captures(gpu, stream) &&
           gpu->stream_get_id(stream, id_p) == CUDA_SUCCESS;
}
