/*
 * Legacy IPC: device memory opened by another process on the same machine. A handle tells which file of which
 * process and where in it; the importer reaches the file through /proc and maps it. A handle's number is new
 * with every allocation. Lock: memory, for writing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/sim.h"

#define HOST_PAGE  4096UL
#define IPC_WINDOW (1UL << 40)

struct ipc_data {
    char magic[8];
    uint64_t number; /* the exporter's block */
    uint64_t inode, offset, bytes;
    int32_t pid, fd, device;
};

struct ipc_open {
    struct ipc_data data;
    unsigned count;
};

static const char magic[8] = "memsimi";
static struct sim_arena window = {.fd = -1};

SIM_API(cuIpcGetMemHandle)(CUipcMemHandle *handle, CUdeviceptr address)
{
    SIM_ENTER_CTX(cuIpcGetMemHandle);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    (void)ctx;
    if (!handle)
        return status;
    sim_memory_read_lock();
    /* of an address inside a block too, the handle is the block's */
    struct sim_block *block = sim_block_at(address);
    if (block && block->kind == SIM_BLOCK_DEVICE && !block->freed && !block->claimed) {
        status = sim_arena_valid_fd(block->arena) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
        struct ipc_data data = {.number = block->id,
                                .inode = block->arena->inode,
                                .offset = block->arena_offset,
                                .bytes = block->range.bytes,
                                .pid = (int32_t)getpid(),
                                .fd = block->arena->fd,
                                .device = block->device};
        memcpy(data.magic, magic, sizeof magic);
        memset(handle, 0, sizeof *handle);
        memcpy(handle, &data, sizeof data);
    }
    sim_memory_unlock();
    return status;
}

/* The exporter's file, if it is still what the handle says. */
static int open_file(const struct ipc_data *data)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", data->pid, data->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int checked = sim_memfd_reopen(fd, "device.");
    close(fd);
    if (checked >= 0 &&
        (fstat(checked, &st) || st.st_ino != data->inode || data->bytes > (uint64_t)st.st_size ||
         data->offset > (uint64_t)st.st_size - data->bytes)) {
        close(checked);
        return -1;
    }
    return checked;
}

static struct sim_block *find_open(struct CUctx_st *ctx, const struct ipc_data *data)
{
    for (struct sim_block *block = sim_block_next(NULL); block; block = sim_block_next(block))
        if (block->kind == SIM_BLOCK_IPC && block->ctx_id == ctx->id && !block->claimed &&
            !memcmp(&((struct ipc_open *)block->owner)->data, data, sizeof *data))
            return block;
    return NULL;
}

/* Anonymous memory takes the place of a mapping, before its addresses go back: they must not reach the
 * exporter's bytes. */
static void hide(size_t offset, size_t bytes)
{
    mmap(window.base + offset, bytes, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    sim_arena_give(&window, offset, bytes);
}

/* Maps the pages around the exporter's block; blocks are finer than pages. */
static struct sim_block *map_block(const struct ipc_data *data, int fd)
{
    size_t before = data->offset % HOST_PAGE, offset;
    size_t bytes = (before + data->bytes + HOST_PAGE - 1) & ~(HOST_PAGE - 1);

    if (!window.base && sim_arena_open(&window, NULL, IPC_WINDOW) != CUDA_SUCCESS)
        return NULL;
    if (!sim_arena_take(&window, bytes, bytes >= SIM_VMM_PAGE ? SIM_VMM_PAGE : HOST_PAGE, &offset))
        return NULL;
    if (mmap(window.base + offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
             (off_t)(data->offset - before)) == MAP_FAILED) {
        hide(offset, bytes);
        return NULL;
    }
    struct sim_block *block =
        sim_block_new(SIM_BLOCK_IPC, (uintptr_t)window.base + offset + before, data->bytes);
    if (!block) {
        hide(offset, bytes);
        return NULL;
    }
    block->arena_offset = offset;
    block->arena_bytes = bytes;
    return block;
}

static CUresult open_new(struct CUctx_st *ctx, const struct ipc_data *data, CUdeviceptr *address_p)
{
    struct ipc_open *opened = calloc(1, sizeof *opened);
    int fd = open_file(data);
    struct sim_block *block = opened && fd >= 0 ? map_block(data, fd) : NULL;

    if (block) {
        opened->data = *data;
        opened->count = 1;
        block->owner = opened;
        block->device = sim_device(data->device) ? data->device : ctx->device->ordinal;
        block->ctx = ctx;
        block->ctx_id = ctx->id;
        *address_p = block->range.start;
    } else {
        free(opened);
    }
    if (fd >= 0)
        close(fd);
    return block ? CUDA_SUCCESS : fd < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_MAP_FAILED;
}

static CUresult open_handle(CUdeviceptr *address_p, const CUipcMemHandle *handle)
{
    struct CUctx_st *ctx;
    struct ipc_data data;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    memcpy(&data, handle, sizeof data);
    if (!address_p || memcmp(data.magic, magic, sizeof magic))
        return CUDA_ERROR_INVALID_VALUE;
    if (data.pid == (int32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_memory_write_lock();
    struct sim_block *block = find_open(ctx, &data);
    if (block) {
        ((struct ipc_open *)block->owner)->count++;
        *address_p = block->range.start;
    } else {
        status = open_new(ctx, &data, address_p);
    }
    sim_memory_unlock();
    return status;
}

SIM_API(cuIpcOpenMemHandle_v2)(CUdeviceptr *address_p, CUipcMemHandle handle, unsigned flags)
{
    SIM_ENTER(cuIpcOpenMemHandle_v2);
    (void)flags; /* not looked at, as the driver does not */
    return open_handle(address_p, &handle);
}

SIM_API(cuIpcOpenMemHandle)(CUdeviceptr *address_p, CUipcMemHandle handle, unsigned flags)
{
    SIM_ENTER(cuIpcOpenMemHandle);
    (void)flags; /* not looked at, as the driver does not */
    return open_handle(address_p, &handle);
}

static void close_block(struct sim_block *block)
{
    free(block->owner);
    hide(block->arena_offset, block->arena_bytes);
    sim_block_drop(block);
}

SIM_API(cuIpcCloseMemHandle)(CUdeviceptr address)
{
    SIM_ENTER_CTX(cuIpcCloseMemHandle);
    bool last = false;

    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    bool good = block && block->kind == SIM_BLOCK_IPC;
    if (good)
        last = block->claimed = !--((struct ipc_open *)block->owner)->count;
    sim_memory_unlock();
    if (!last)
        return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    sim_context_drain(ctx);
    sim_memory_write_lock();
    close_block(block);
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

/** Closes what a context that dies still has open. */
void sim_ipc_drop_context(struct CUctx_st *ctx)
{
    sim_memory_write_lock();
    for (struct sim_block *block = sim_block_next(NULL), *next; block; block = next) {
        next = sim_block_next(block);
        if (block->kind == SIM_BLOCK_IPC && block->ctx_id == ctx->id)
            close_block(block);
    }
    sim_memory_unlock();
}
