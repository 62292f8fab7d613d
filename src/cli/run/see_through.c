/* see_through.c - see see_through.h.
 *
 * Floor 5. Each framework reads its own variables and none reads another's, so all are set for every
 * program. docs/user/see-through.md has a row for each (a test holds the two together), and says where each
 * is read, since when, and whether it was tried. */
#include "cli/run/see_through.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/cli.h"

static const struct {
    const char *framework, *variable, *value;
} rows[] = {
    {"PyTorch", "PYTORCH_NO_CUDA_MEMORY_CACHING", "1"},
    {"PyTorch", "PYTORCH_NO_HIP_MEMORY_CACHING", "1"},
    {"torch_npu", "PYTORCH_NO_NPU_MEMORY_CACHING", "1"},
    {"JAX", "XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
    {"JAX", "XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
    {"TensorFlow", "TF_GPU_ALLOCATOR", "cuda_malloc_async"},
    {"TensorFlow", "TF_FORCE_GPU_ALLOW_GROWTH", "true"},
    {"numba-cuda", "NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", "0"},
    {"RMM", "CUDF_PANDAS_RMM_MODE", "cuda"},
    {"PaddlePaddle", "FLAGS_use_system_allocator", "1"},
    {"MXNet", "MXNET_GPU_MEM_POOL_TYPE", "Unpooled"},
};

int ms_see_through_set(bool quiet)
{
    char line[1024] = "";
    size_t length = 0;

    for (size_t i = 0; i < MS_ARRAY_LEN(rows); i++) {
        const char *own = getenv(rows[i].variable);

        if (own) {
            if (!quiet && strcmp(own, rows[i].value))
                ms_cli_note("--see-through: %s=%.200s is yours and stays (not %s): what %s asks for may be "
                            "segments",
                            rows[i].variable, own, rows[i].value, rows[i].framework);
            continue;
        }
        if (setenv(rows[i].variable, rows[i].value, 1) < 0) {
            ms_cli_error("out of memory");
            return -1;
        }
        if (length < sizeof(line))
            length += (size_t)snprintf(line + length, sizeof(line) - length, " %s=%s", rows[i].variable,
                                       rows[i].value);
    }
    if (!quiet && *line)
        ms_cli_note("--see-through: set%s", line);
    return 0;
}
