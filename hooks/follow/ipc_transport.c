/* ipc_transport.c - whether what this process exports must be the vendor's own: MEMSHIM_IPC; see ipc.h. And
 * whether large blocks begin on pages of 2 MiB: MEMSHIM_ALIGN.
 *
 * MPI, UCX, libfabric and NVSHMEM exchange handles with processes that need not run under memshim, and
 * register whole allocations. These, cuFile and GDRCopy register memory with other devices. They are known by
 * the names of loaded objects. That NVSHMEM's host library is loaded says nothing, as every PyTorch loads it:
 * where it is used, it opens a bootstrap first. dlopen is hooked where it is entered, not where it returns:
 * so after one the list is looked at a few times, ever later. One thread at a time looks; the others go on
 * with what is known. */
#include "hooks/follow/ipc.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/options/options.h"
#include "hooks/serve/serve.h"
#include "record/file/journal.h"

static const char *const names[] = {"libmpi.so",         "libmpi_",   "libmpi-",       "libmpich",
                                    "libucp.so",         "libucs.so", "libuct.so",     "libucp-",
                                    "libucs-",           "libuct-",   "libnvshmem.so", "nvshmem_bootstrap_",
                                    "nvshmem_transport_"};
static const char *const registering[] = {"libcufile.so", "libgdrapi.so"};
static const uint64_t later_ns[] = {1000000, 10000000, 100000000, 1000000000};

enum { REQUESTS_PER_LOOK = 32 };
_Atomic unsigned ms_ipc_look_in = 1;
static _Atomic bool looking;
_Atomic uint64_t ms_ipc_next_look_ns;
static _Atomic unsigned looks;
static char found_name[64];
static _Atomic bool found;

static bool is_one_of(const char *path, const char *const *begins, size_t count)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < count; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    }
    return false;
}

/* Finds a transport, and notes on the way what registers memory. */
static int is_transport(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)bytes;
    if (is_one_of(info->dlpi_name, registering, MS_ARRAY_LEN(registering)))
        ms_serve_align_pages();
    if (!is_one_of(info->dlpi_name, names, MS_ARRAY_LEN(names)))
        return 0;
    snprintf(arg, sizeof(found_name), "%s", slash ? slash + 1 : info->dlpi_name);
    return 1;
}

static void ipc_transport_settle(bool whole)
{
    if (whole)
        ms_serve_export_whole();
    atomic_store_explicit(&ms_ipc_look_in, 0, memory_order_relaxed);
}

/* Names are looked for in each object alone. */
static void look_anew(void *unused)
{
    (void)unused;
}

static struct ms_objects_since since; /* for whoever looks */

/* `matters`: beside a transport nothing is packed. */
static void look_at_objects(bool matters)
{
    unsigned look = atomic_load_explicit(&looks, memory_order_relaxed);
    bool any = ms_each_object_since(&since, look_anew, is_transport, found_name) != 0;

    if (any)
        ms_serve_align_pages();
    if (any && matters) {
        atomic_store_explicit(&found, true, memory_order_release);
        ipc_transport_settle(true);
        ms_diagnostic(MS_LOG_INFO, "ipc",
                      "%s is loaded: from here on nothing is packed that could be exported", found_name);
    } else if (any || look >= MS_ARRAY_LEN(later_ns)) {
        ipc_transport_settle(false);
    } else {
        atomic_store_explicit(&ms_ipc_next_look_ns, ms_clock_ns() + later_ns[look], memory_order_relaxed);
        atomic_store_explicit(&looks, look + 1, memory_order_relaxed);
    }
}

void ms_ipc_look(void)
{
    int64_t chosen = ms_option_int(MS_OPT_IPC);

    atomic_store_explicit(&ms_ipc_look_in, REQUESTS_PER_LOOK, memory_order_relaxed);
    if (ms_clock_ns() < atomic_load_explicit(&ms_ipc_next_look_ns, memory_order_relaxed) ||
        atomic_exchange(&looking, true))
        return;
    if (chosen == MS_IPC_NATIVE) {
        ipc_transport_settle(true);
    } else if (chosen == MS_IPC_AUTO && !*ms_journal_path()) {
        ipc_transport_settle(true);
        ms_diagnostic(
            MS_LOG_INFO, "ipc",
            "without a ledger file no token could be opened: nothing is packed that could be exported");
    } else {
        look_at_objects(chosen == MS_IPC_AUTO);
    }
    atomic_store(&looking, false);
}

void ms_ipc_loading(void)
{
    if (atomic_load_explicit(&found, memory_order_relaxed))
        return;
    atomic_store_explicit(&looks, 0, memory_order_relaxed);
    atomic_store_explicit(&ms_ipc_next_look_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&ms_ipc_look_in, 1, memory_order_relaxed);
}

const char *ms_ipc_transport(void)
{
    return atomic_load_explicit(&found, memory_order_acquire) ? found_name : NULL;
}

void ms_ipc_context_ended(uint64_t context)
{
    ms_ipc_exports_context_ended(context);
    ms_ipc_imports_context_ended(context);
}

static void ipc_reset(void)
{
    atomic_store(&looking, false);
    atomic_store(&found, false);
    ms_ipc_loading();
}
MS_AT_FORK(MS_FORK_HOOKS, ipc_reset);
