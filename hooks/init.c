/* init.c - start on the first hooked call, fork, and the loader's entry points.
 *
 * Starting takes one lock, allocates with mmap only (a regular expression is compiled where the user asks for
 * one), and may happen inside anybody's constructor. */
#include "hooks/init.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <dlfcn.h>
#include <pthread.h>

#include "base/at_fork.h"
#include "base/thread/bias.h"
#include "base/thread/cancel.h"
#include "base/files.h"
#include "base/thread/guard.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/options/options.h"
#include "base/thread/aux_stack.h"
#include "base/store/store.h"
#include "hooks/follow/balance.h"
#include "hooks/dispatch.h"
#include "hooks/lookup/entry.h"
#include "hooks/follow/ipc.h"
#include "hooks/lookup/listeners.h"
#include "hooks/lookup/resolve.h"
#include "hooks/hook_scope.h"
#include "hooks/serve/limit.h"
#include "hooks/serve/neighbours.h"
#include "hooks/serve/serve.h"
#include "hooks/follow/uses.h"
#include "unwind/python/python.h"

_Atomic int ms_init_state;
static _Atomic int exit_code = -1;
static _Atomic bool out_of_sight;   /* something was opened that binds past us */
static _Atomic bool came_by_fork;   /* from a process that had called the GPU */
static _Atomic uint64_t next_asked; /* rows are counted, the report names the way */
static struct ms_lock start_lock = MS_LOCK_INIT(MS_RANK_RESOLVE);

/* One word in a page that a child of fork, or of a raw clone, finds zeroed: whoever sees 0 starts empty. */
static _Atomic uint32_t no_owner, owner_without_page = 1;
_Atomic uint32_t *_Atomic ms_init_owner_word = &no_owner;

static void init_complain(void *arg, const char *line)
{
    (void)arg;
    ms_diagnostic(MS_LOG_WARN, "options", "%s", line);
}

static bool matches(enum ms_option_id id, const char *path)
{
    regex_t expression;
    bool hit;

    if (!ms_option_text(id)[0] || regcomp(&expression, ms_option_text(id), REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    hit = regexec(&expression, path, 0, NULL, 0) == 0;
    regfree(&expression);
    return hit;
}

struct choice {
    char path[4096];
    bool chosen;
};

static void init_choose(void *arg)
{
    struct choice *choice = arg;

    ms_file_executable(choice->path, sizeof choice->path);
    choice->chosen = (!ms_option_text(MS_OPT_INCLUDE)[0] || matches(MS_OPT_INCLUDE, choice->path)) &&
                     !matches(MS_OPT_EXCLUDE, choice->path);
}

static bool is_chosen_program(void)
{
    struct choice *choice;
    bool chosen = true;

    if (!ms_option_text(MS_OPT_INCLUDE)[0] && !ms_option_text(MS_OPT_EXCLUDE)[0])
        return true;
    if ((choice = ms_aux_stack_take())) {
        ms_aux_stack_call_anyway(init_choose, choice);
        chosen = choice->chosen;
    }
    ms_aux_stack_give(choice);
    return chosen;
}

/* In a child of fork. A raw clone runs no handler: there the wiped page alone tells. */
static void forked(void)
{
    ms_objects_after_fork_child();
    ms_lock_reset(&start_lock);
    ms_resolve_reset();
    atomic_store(ms_init_owner_word, 0);
}

static _Atomic uint32_t *map_owner(void)
{
    _Atomic uint32_t *owner = &owner_without_page; /* kernels before 4.14: a raw clone is then not noticed */
    long page = sysconf(_SC_PAGESIZE);
    void *word = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (word != MAP_FAILED && madvise(word, (size_t)page, MADV_WIPEONFORK) == 0)
        owner = word;
    atomic_store(owner, 1);
    return owner;
}

static struct ms_api_info api_infos[MS_ROW_RECORDED];

/* The symbol of a function of C++ has its parameters in it, and people know it by the name alone. */
static const char *name_in_record(const struct ms_row_info *row)
{
    return row->symbol[0] == '_' && row->symbol[1] == 'Z' ? row->lookup : row->symbol;
}

static void start_ledger(void)
{
    for (unsigned row = 0; row < MS_ROW_COUNT; row++)
        api_infos[row] = (struct ms_api_info){.name = name_in_record(ms_rows[row]),
                                              .family = ms_families[ms_rows[row]->api].tag};
    api_infos[MS_ROW_INNER] = (struct ms_api_info){.name = "memshim_inner_alloc", .family = "memshim"};
    api_infos[MS_ROW_INNER_NVTX] = (struct ms_api_info){.name = "nvtxMemRegionsRegister", .family = "nvtx"};
    ms_ledger_init(api_infos, MS_ROW_RECORDED);
}

/* Registered at the first GPU call: what is registered before main runs after the destructor that writes the
 * report. */
static void note_exit(int status, void *arg)
{
    (void)arg;
    atomic_store(&exit_code, status & 0xff);
}

static int say_copy(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    struct ms_elf elf;

    (void)bytes, (void)unused;
    if (!ms_is_self(info) && ms_elf_open(info, &elf) && ms_is_memshim(&elf))
        ms_diagnostic(MS_LOG_WARN, "start", "a second copy of memshim is loaded and stays inert: %.300s",
                      info->dlpi_name);
    return 0;
}

static void say_copies(void)
{
    ms_each_object(say_copy, NULL);
}

static void start_locked(void)
{
    static const uint8_t walks[] = {[MS_STACKS_ALL] = MS_WALK_UNWIND,
                                    [MS_STACKS_SAMPLE] = MS_WALK_UNWIND,
                                    [MS_STACKS_FP] = MS_WALK_FP,
                                    [MS_STACKS_OFF] = MS_WALK_OFF};
    _Atomic uint32_t *owner;
    bool secure = getauxval(AT_SECURE) != 0;

    if (ms_is_second) {
        atomic_store_explicit(&ms_init_state, MS_INIT_INERT, memory_order_release);
        return;
    }
    ms_options_load(secure ? NULL : environ, init_complain, NULL);
    ms_log_set_level((enum ms_log_level)ms_option_int(MS_OPT_LOG));
    if (!ms_option_int(MS_OPT_RUN)) /* memshim run has said it */
        ms_options_check(init_complain, NULL);
    if (secure || ms_option_int(MS_OPT_MODE) == MS_MODE_OFF || !is_chosen_program()) {
        atomic_store_explicit(&ms_init_state, MS_INIT_INERT, memory_order_release);
        return;
    }
    owner = map_owner();
    ms_cancel_learn();
    ms_stack_configure(walks[ms_option_int(MS_OPT_STACKS)], (unsigned)ms_option_int(MS_OPT_STACK_DEPTH));
    ms_stack_configure_sampling(ms_option_int(MS_OPT_STACKS) == MS_STACKS_SAMPLE);
    ms_python_configure(ms_option_int(MS_OPT_PYTHON) == MS_PYTHON_ON);
    ms_bias_start();
    start_ledger();
    ms_uses_start();
    ms_layouts_start();
    say_copies();
    on_exit(note_exit, NULL);
    ms_limit_start();
    ms_neighbours_start();
    ms_serve_start(false);
    /* first: who finds it 0 while active starts over */
    atomic_store_explicit(&ms_init_owner_word, owner, memory_order_release);
    atomic_store_explicit(&ms_init_state, MS_INIT_ACTIVE, memory_order_release);
}

/* The parent's threads do not exist here, so their locks are nobody's; its tables are not ours to touch. */
static void start_over(void)
{
    for (enum ms_fork_rank rank = 0; rank < MS_FORK_RANKS; rank++)
        ms_at_fork_run(rank);
    ms_bias_start();
    start_ledger();
    ms_uses_start();
    ms_layouts_start();
    ms_serve_start(true);
    ms_thread.outermost = NULL;
    ms_thread.recording = 0;
    ms_thread.tid = 0;
    ms_thread.fast = (struct ms_fast_cache){0};
    atomic_store(&came_by_fork, true);
    atomic_store(ms_init_owner_word, 1);
}

static void init_start(void)
{
    struct ms_hook_scope scope;

    ms_hook_scope_enter(&scope);
    ms_lock(&start_lock);
    if (atomic_load_explicit(&ms_init_state, memory_order_relaxed) == MS_INIT_UNSTARTED)
        start_locked();
    ms_unlock(&start_lock);
    ms_hook_scope_leave(&scope);
}

bool ms_init_active_slowly(void)
{
    int now = atomic_load_explicit(&ms_init_state, memory_order_acquire);

    if (MS_UNLIKELY(now == MS_INIT_UNSTARTED)) {
        if (ms_thread.depth > 0) /* a signal handler inside start(): its thread holds the lock */
            return false;
        init_start();
        now = atomic_load_explicit(&ms_init_state, memory_order_acquire);
    }
    if (now != MS_INIT_ACTIVE)
        return false;
    if (MS_UNLIKELY(atomic_load_explicit(ms_init_owner_word, memory_order_relaxed) == 0)) {
        struct ms_hook_scope scope;
        ms_hook_scope_enter(&scope);
        start_over();
        ms_hook_scope_leave(&scope);
    }
    return true;
}

bool ms_init_is_forked(void)
{
    return atomic_load(&came_by_fork);
}

void ms_init_note_next(int row)
{
    if (ms_rows[row]->class == MS_CLASS_LISTEN)
        ms_listener_came(); /* for all that can be seen */
    if (ms_families[ms_rows[row]->api].vendor)
        atomic_fetch_add_explicit(&next_asked, 1, memory_order_relaxed);
}

int ms_init_exit_code(void)
{
    return atomic_load(&exit_code);
}

static void note_blind(const char *what, const char *which)
{
    char line[200];

    if (!ms_init_active())
        return;
    snprintf(line, sizeof(line), "%s: %s", what, which ? which : "the program itself");
    ms_ledger_blind_spot(line);
    atomic_store_explicit(&out_of_sight, true, memory_order_relaxed);
    ms_listener_unseen();
}

bool ms_init_saw_gpu(void)
{
    return ms_ledger_touched() ||
           (atomic_load_explicit(&out_of_sight, memory_order_relaxed) && ms_loader_has_vendor());
}

int ms_enter_dlopen(const char *file, int flags)
{
    int saved_errno = errno;

    if (!__atomic_load_n(&ms_real_dlsym, __ATOMIC_ACQUIRE))
        ms_resolve_loader();
    if (ms_is_second)
        return flags;
    ms_objects_changed();
    ms_ipc_loading();
    if (flags & RTLD_GLOBAL)
        ms_bind_note_global(file);
    if ((flags & RTLD_DEEPBIND) && ms_init_active()) {
        if (ms_option_int(MS_OPT_DEEPBIND) == MS_DEEPBIND_CLEAR)
            flags &= ~RTLD_DEEPBIND;
        else
            note_blind("opened with RTLD_DEEPBIND, binds to itself before us", file);
    }
    errno = saved_errno;
    return flags;
}

void ms_enter_dlmopen(long space, const char *file)
{
    int saved_errno = errno;

    if (!__atomic_load_n(&ms_real_dlsym, __ATOMIC_ACQUIRE))
        ms_resolve_loader();
    if (space != LM_ID_BASE)
        note_blind("opened in a namespace of its own by dlmopen", file);
    errno = saved_errno;
}

void ms_enter_dlclose(void)
{
    if (!__atomic_load_n(&ms_real_dlsym, __ATOMIC_ACQUIRE))
        ms_resolve_loader();
    ms_resolve_unloaded();
    ms_objects_changed();
}

void ms_init_finish(void)
{
    ms_serve_finish();
    if (atomic_load(&next_asked) != 0)
        ms_ledger_blind_spot(
            "driver functions looked up with dlsym(RTLD_NEXT): calls through them are not seen");
}

__attribute__((constructor)) static void prepare(void)
{
    ms_resolve_loader();
    ms_libraries_note_startup();
    pthread_atfork(ms_objects_before_fork, ms_objects_after_fork_parent, forked);
}
