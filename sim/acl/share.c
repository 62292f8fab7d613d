/*
 * Physical handles between processes: exported once, opened by those that the exporter has named, or by all.
 *
 * A shareable number says which process, which of its descriptors is the table, which row, and which serial
 * number the row must have. Own: the table of what this process shares, under one mutex; readers in other
 * processes copy a row and look whether it stayed.
 */
#include "sim/acl/share.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/memory/vmm.h"

#define ROWS        4096U
#define TABLE_NAME  "memsim.aclshare"
#define TABLE_KIND  "aclshare"
#define TABLE_BYTES (ROWS * sizeof(struct acl_share_row))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct acl_share_row *rows;
static int table_fd = -1;
static uint32_t last_serial;

/* process:22 descriptor:14 row:12 serial:16 */
static uint64_t number_of(int pid, int fd, unsigned row, uint32_t serial)
{
    return (uint64_t)pid << 42 | (uint64_t)fd << 28 | (uint64_t)row << 16 | (serial & 0xFFFF);
}

int acl_share_owner(uint64_t shared)
{
    return (int)(shared >> 42);
}

static int fd_of(uint64_t shared)
{
    return (int)(shared >> 28 & 0x3FFF);
}

static unsigned row_of(uint64_t shared)
{
    return (unsigned)(shared >> 16 & 0xFFF);
}

static bool open_table(void)
{
    if (rows)
        return true;
    table_fd = sim_memfd_open(TABLE_NAME, TABLE_BYTES);
    if (table_fd < 0 || table_fd > 0x3FFF)
        return false;
    void *mapped = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
    rows = mapped == MAP_FAILED ? NULL : mapped;
    return rows != NULL;
}

/* The row of a number of ours, or NULL. */
static struct acl_share_row *own_row(uint64_t shared)
{
    struct acl_share_row *row = rows && acl_share_owner(shared) == getpid() ? &rows[row_of(shared)] : NULL;
    uint32_t serial = row ? atomic_load(&row->serial) : 0;

    return serial && (serial & 0xFFFF) == (shared & 0xFFFF) ? row : NULL;
}

uint64_t acl_share_enter(const struct acl_share_row *row)
{
    uint64_t shared = 0;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; open_table() && i < ROWS && !shared; i++) {
        if (atomic_load(&rows[i].serial))
            continue;
        if (!(++last_serial & 0xFFFF))
            last_serial++;
        memcpy((char *)&rows[i] + sizeof rows[i].serial, (const char *)row + sizeof row->serial,
               sizeof *row - sizeof row->serial);
        atomic_store(&rows[i].serial, last_serial);
        shared = number_of((int)getpid(), table_fd, i, last_serial);
    }
    pthread_mutex_unlock(&lock);
    return shared;
}

void acl_share_forget(uint64_t shared)
{
    pthread_mutex_lock(&lock);
    struct acl_share_row *row = own_row(shared);
    if (row)
        atomic_store(&row->serial, 0);
    pthread_mutex_unlock(&lock);
}

aclError acl_share_permit(uint64_t shared, enum acl_share_kind kind, const int32_t *pids, size_t count)
{
    aclError status = ACL_ERROR_RT_DRV_INTERNAL_ERROR;

    pthread_mutex_lock(&lock);
    struct acl_share_row *row = own_row(shared);
    if (row && row->kind == kind && count <= ACL_SHARE_PIDS - row->pid_count) {
        memcpy(&row->pids[row->pid_count], pids, count * sizeof *pids);
        __atomic_store_n(&row->pid_count, row->pid_count + (uint32_t)count, __ATOMIC_RELEASE);
        status = ACL_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* A file of another process, if its name is of this kind. */
static int open_theirs(int pid, int their_fd, const char *kind, int flags)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, their_fd);
    int fd = open(path, flags | O_CLOEXEC);
    int checked = fd >= 0 ? sim_memfd_reopen(fd, kind) : -1;
    if (fd >= 0)
        close(fd);
    return checked;
}

static bool read_row(uint64_t shared, struct acl_share_row *row)
{
    int fd = open_theirs(acl_share_owner(shared), fd_of(shared), TABLE_KIND, O_RDONLY);
    void *mapped = fd >= 0 ? mmap(NULL, TABLE_BYTES, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    bool whole = false;

    if (mapped != MAP_FAILED) {
        struct acl_share_row *theirs = &((struct acl_share_row *)mapped)[row_of(shared)];
        uint32_t serial = atomic_load(&theirs->serial);
        memcpy((void *)row, (const void *)theirs, sizeof *row);
        whole = serial && (serial & 0xFFFF) == (shared & 0xFFFF) && atomic_load(&theirs->serial) == serial;
        munmap(mapped, TABLE_BYTES);
    }
    if (fd >= 0)
        close(fd);
    return whole;
}

aclError acl_share_find(uint64_t shared, enum acl_share_kind kind, struct acl_share_row *row)
{
    if (!read_row(shared, row) || row->kind != kind)
        return ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    bool listed = row->anybody;
    for (uint32_t i = 0; !listed && i < row->pid_count && i < ACL_SHARE_PIDS; i++)
        listed = row->pids[i] == (int32_t)getpid();
    return listed ? ACL_SUCCESS : ACL_ERROR_RT_DRV_INTERNAL_ERROR;
}

/* --- physical handles ----------------------------------------------------------------------------------- */

/* Fills in what the rooms below know of a handle's file. */
static bool file_of(const struct acl_physical *physical, struct acl_share_row *row)
{
    sim_memory_read_lock();
    const struct sim_phys *phys = sim_phys_find(physical->number);
    bool valid = phys && sim_arena_valid_fd(phys->arena);
    if (valid) {
        row->physical.fd = phys->arena->fd;
        row->physical.inode = phys->arena->inode;
    }
    sim_memory_unlock();
    row->physical.bytes = physical->bytes;
    row->physical.prop = physical->prop;
    return valid;
}

/* One handle is one shareable handle: a second export is refused, and so is that of an imported one. */
static aclError export_handle(aclrtDrvMemHandle handle, uint64_t flags, uint64_t *shared_p)
{
    struct acl_share_row row = {.kind = ACL_SHARE_PHYSICAL,
                                .anybody = flags & ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION};
    aclError status = ACL_ERROR_RT_INVALID_HANDLE;

    acl_physical_lock();
    struct acl_physical *physical = acl_physical_find(handle);
    if (physical && (physical->shared || physical->imported || !file_of(physical, &row))) {
        status = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    } else if (physical) {
        physical->shared = acl_share_enter(&row);
        *shared_p = physical->shared;
        status = physical->shared ? ACL_SUCCESS : ACL_ERROR_RT_DRV_INTERNAL_ERROR;
    }
    acl_physical_unlock();
    return status;
}

static aclError import_handle(uint64_t shared, int32_t device, aclrtDrvMemHandle *handle_p)
{
    CUmemGenericAllocationHandle number;
    struct acl_share_row row;
    struct stat st;

    ACL_TRY(acl_context());
    ACL_CHECK(sim_device(device), ACL_ERROR_RT_INVALID_DEVICEID);
    ACL_TRY(acl_share_find(shared, ACL_SHARE_PHYSICAL, &row));
    int fd = open_theirs(acl_share_owner(shared), row.physical.fd, "vmm.", O_RDWR);
    bool same = fd >= 0 && !fstat(fd, &st) && st.st_ino == row.physical.inode;
    CUresult status = same ? cuMemImportFromShareableHandle(&number, (void *)(intptr_t)fd,
                                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                           : CUDA_ERROR_UNKNOWN;
    if (fd >= 0)
        close(fd);
    ACL_TRY(acl_status(status));
    acl_physical_lock();
    struct acl_physical *physical = acl_physical_enter(number, &row.physical.prop, row.physical.bytes);
    if (physical) {
        physical->imported = true;
        physical->prop.location.id = (uint32_t)device;
        *handle_p = physical;
    }
    acl_physical_unlock();
    if (!physical)
        cuMemRelease(number);
    return physical ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}

ACL_API(aclrtMemExportToShareableHandle)
(aclrtDrvMemHandle handle, aclrtMemHandleType type, uint64_t flags, uint64_t *shared_p)
{
    ACL_ENTER(aclrtMemExportToShareableHandle);
    ACL_CHECK(handle && shared_p && type == ACL_MEM_HANDLE_TYPE_NONE && flags <= 1, ACL_ERROR_INVALID_PARAM);
    return export_handle(handle, flags, shared_p);
}

ACL_API(aclrtMemImportFromShareableHandle)(uint64_t shared, int32_t device, aclrtDrvMemHandle *handle_p)
{
    ACL_ENTER(aclrtMemImportFromShareableHandle);
    ACL_CHECK(handle_p, ACL_ERROR_INVALID_PARAM);
    return import_handle(shared, device, handle_p);
}

ACL_API(aclrtMemSetPidToShareableHandle)(uint64_t shared, int32_t *pids, size_t count)
{
    ACL_ENTER(aclrtMemSetPidToShareableHandle);
    ACL_CHECK(pids && count, ACL_ERROR_INVALID_PARAM);
    return acl_share_permit(shared, ACL_SHARE_PHYSICAL, pids, count);
}

/* The second version's handles: a number, or bytes that begin with one, for other machines too. */
static bool known_type(aclrtMemSharedHandleType type)
{
    return type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC;
}

ACL_API(aclrtMemExportToShareableHandleV2)
(aclrtDrvMemHandle handle, uint64_t flags, aclrtMemSharedHandleType type, void *shared_p)
{
    ACL_ENTER(aclrtMemExportToShareableHandleV2);
    uint64_t shared;

    ACL_CHECK(handle && shared_p && known_type(type) && flags <= 1, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(export_handle(handle, flags, &shared));
    if (type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC)
        memset(shared_p, 0, sizeof(aclrtMemFabricHandle));
    memcpy(shared_p, &shared, sizeof shared);
    return ACL_SUCCESS;
}

ACL_API(aclrtMemImportFromShareableHandleV2)
(void *shared_p, aclrtMemSharedHandleType type, uint64_t flags, aclrtDrvMemHandle *handle_p)
{
    ACL_ENTER(aclrtMemImportFromShareableHandleV2);
    uint64_t shared;

    ACL_CHECK(shared_p && handle_p && known_type(type) && !flags, ACL_ERROR_INVALID_PARAM);
    memcpy(&shared, shared_p, sizeof shared);
    ACL_TRY(acl_context());
    return import_handle(shared, acl_device(), handle_p);
}

ACL_API(aclrtMemSetPidToShareableHandleV2)
(void *shared_p, aclrtMemSharedHandleType type, int32_t *pids, size_t count)
{
    ACL_ENTER(aclrtMemSetPidToShareableHandleV2);
    uint64_t shared;

    ACL_CHECK(shared_p && pids && count && known_type(type), ACL_ERROR_INVALID_PARAM);
    memcpy(&shared, shared_p, sizeof shared);
    return acl_share_permit(shared, ACL_SHARE_PHYSICAL, pids, count);
}
