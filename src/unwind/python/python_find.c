/* python_find.c - looking for a CPython among the loaded objects.
 *
 * Floor 1. By the objects' own tables of symbols, without the loader's functions: an interpreter may be the
 * executable, or a library that nobody else can see (RTLD_LOCAL). What was found is written once and
 * published; two threads that look at the same time find the same. No lock of its own. */
#include <stdatomic.h>
#include <string.h>

#include "base/at_fork.h"
#include "base/objects/elf.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "unwind/native/memory.h"
#include "unwind/python/python.h"
#include "unwind/python/python_find.h"

/* A process that unloads its interpreter and loads another does so a few times at most; what was found is
 * never taken back, since a thread may be reading by it. */
enum { FOUND_MAX = 8, HEX_3_9 = 0x03090000, HEX_3_10 = 0x030a0000 };

_Atomic bool ms_python_is_here;

static _Atomic bool is_on;
static struct ms_python_interpreter found[FOUND_MAX];
static _Atomic unsigned found_count;
static const struct ms_python_interpreter *_Atomic current;
/* The changes that had been announced, and what the loader had counted, when objects were looked through. */
static _Atomic uint64_t changes_looked, adds_looked, subs_looked;

struct search {
    struct ms_python_symbols symbols;
    uintptr_t bias;
    bool is_first, has_other;
    uintptr_t first_code_type, first_str_type; /* of the executable */
};

static void *function(const struct ms_elf *elf, const char *name)
{
    return (void *)ms_elf_symbol(elf, name);
}

/* 3.9 and 3.10 do not export it, and are told apart by a function that came with 3.10. */
static uint32_t version_of(const struct ms_elf *elf)
{
    unsigned long version;
    uintptr_t at = ms_elf_symbol(elf, "Py_Version");
    if (at)
        return ms_memory_copy(at, &version, sizeof version) ? (uint32_t)version : 0;
    if (ms_elf_symbol(elf, "PyIter_Send"))
        return HEX_3_10;
    return ms_elf_symbol(elf, "PyFrame_GetCode") ? HEX_3_9 : 0;
}

/* If the executable refers to the types of a library, it has them itself (copy relocations). */
static uintptr_t data_symbol(const struct ms_elf *elf, uintptr_t of_executable, const char *name)
{
    return of_executable ? of_executable : ms_elf_symbol(elf, name);
}

static int search_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct search *search = arg;
    struct ms_python_symbols *symbols = &search->symbols;
    struct ms_elf elf;
    bool is_first = search->is_first;
    (void)bytes;
    search->is_first = false;
    if (!ms_elf_open(info, &elf))
        return 0;
    if (is_first) {
        search->first_code_type = ms_elf_symbol(&elf, "PyCode_Type");
        search->first_str_type = ms_elf_symbol(&elf, "PyUnicode_Type");
    }
    symbols->this_thread = (void *(*)(void))function(&elf, "PyGILState_GetThisThreadState");
    if (!symbols->this_thread) {
        search->has_other |= ms_elf_symbol(&elf, "PyPyGILState_Ensure") != 0;
        return 0;
    }
    symbols->is_finalizing = (int (*)(void))function(&elf, "_Py_IsFinalizing");
    if (!symbols->is_finalizing)
        symbols->is_finalizing = (int (*)(void))function(&elf, "Py_IsFinalizing");
    symbols->is_initialized = (int (*)(void))function(&elf, "Py_IsInitialized");
    symbols->current = (void *(*)(void))function(&elf, "PyThreadState_GetUnchecked");
    if (!symbols->current)
        symbols->current = (void *(*)(void))function(&elf, "_PyThreadState_UncheckedGet");
    symbols->main = (void *(*)(void))function(&elf, "PyInterpreterState_Main");
    symbols->at_exit = (int (*)(void (*)(void)))function(&elf, "Py_AtExit");
    symbols->runtime = ms_elf_symbol(&elf, "_PyRuntime");
    symbols->code_type = data_symbol(&elf, search->first_code_type, "PyCode_Type");
    symbols->str_type = data_symbol(&elf, search->first_str_type, "PyUnicode_Type");
    symbols->version = version_of(&elf);
    if (symbols->version >> 16 <= HEX_3_10 >> 16)
        symbols->loop = ms_elf_range(&elf, "_PyEval_EvalFrameDefault", &symbols->loop_end);
    search->bias = info->dlpi_addr;
    return 1;
}

static void say_no(const struct search *search, const char *why)
{
    uint32_t version = (uint32_t)search->symbols.version;
    if (version)
        ms_diagnostic(MS_LOG_INFO, "stacks", "no Python frames are read of this process's Python %u.%u: %s",
                      version >> 24, version >> 16 & 0xff, why);
    else
        ms_diagnostic(MS_LOG_INFO, "stacks", "no Python frames are read of this process's Python: %s", why);
}

/* NULL if it is not one that is read. */
static const struct ms_python_interpreter *understand(const struct search *search)
{
    const struct ms_python_symbols *symbols = &search->symbols;
    struct ms_python_interpreter new = {.bias = search->bias, .symbols = *symbols};
    const char *why = "it lacks symbols that CPython has";
    const struct ms_python_interpreter *known = atomic_load_explicit(&current, memory_order_acquire);
    if (known && known->bias == search->bias && memcmp(&known->symbols, symbols, sizeof *symbols) == 0)
        return known;
    if (!symbols->is_finalizing || !symbols->is_initialized || !symbols->code_type || !symbols->str_type ||
        !ms_python_layout_find(symbols, &new.layout, &why)) {
        say_no(search, why);
        return NULL;
    }
    unsigned slot = atomic_fetch_add_explicit(&found_count, 1, memory_order_relaxed);
    if (slot >= FOUND_MAX) {
        atomic_store_explicit(&found_count, FOUND_MAX, memory_order_relaxed);
        say_no(search, "too many interpreters were loaded one after another");
        return NULL;
    }
    new.generation = slot + 1;
    found[slot] = new;
    return &found[slot];
}

static void search_anew(void *arg)
{
    *(struct search *)arg = (struct search){.is_first = true};
}

/* The results of the search, and the objects in which it was made; whose turn it is has them. */
static atomic_flag looking = ATOMIC_FLAG_INIT;
static struct search search;
static struct ms_objects_since since;

/* A thread that finds another looking goes by what was known before. */
static MS_NOINLINE void python_find_look(void)
{
    if (atomic_flag_test_and_set(&looking))
        return;
    uint64_t changes = ms_objects_changes();
    uint64_t adds = atomic_load_explicit(&ms_objects_counts.adds_seen, memory_order_relaxed);
    uint64_t subs = atomic_load_explicit(&ms_objects_counts.subs_seen, memory_order_relaxed);
    const struct ms_python_interpreter *interpreter = NULL;
    if (ms_each_object_since(&since, search_anew, search_object, &search))
        interpreter = understand(&search);
    else if (search.has_other)
        say_no(&search, "it is PyPy");
    atomic_store_explicit(&current, interpreter, memory_order_release);
    atomic_store_explicit(&ms_python_is_here, interpreter != NULL, memory_order_relaxed);
    atomic_store_explicit(&ms_python_seen, (uint32_t)search.symbols.version, memory_order_relaxed);
    atomic_store_explicit(&ms_python_is_read, interpreter != NULL, memory_order_relaxed);
    /* Last: who finds all three as they are now finds what was found then. */
    atomic_store_explicit(&changes_looked, changes, memory_order_release);
    atomic_store_explicit(&adds_looked, adds, memory_order_release);
    atomic_store_explicit(&subs_looked, subs, memory_order_release);
    atomic_flag_clear(&looking);
}

static bool is_stale(void)
{
    return ms_objects_changes() != atomic_load_explicit(&changes_looked, memory_order_acquire) ||
           atomic_load_explicit(&ms_objects_counts.adds_seen, memory_order_relaxed) !=
               atomic_load_explicit(&adds_looked, memory_order_acquire) ||
           ms_objects_unloads() != atomic_load_explicit(&subs_looked, memory_order_acquire);
}

const struct ms_python_interpreter *ms_python_interpreter(void)
{
    if (!atomic_load_explicit(&is_on, memory_order_relaxed))
        return NULL;
    if (MS_UNLIKELY(is_stale()))
        python_find_look();
    return atomic_load_explicit(&current, memory_order_acquire);
}

void ms_python_find_again(void)
{
    if (atomic_load_explicit(&is_on, memory_order_relaxed) && is_stale())
        atomic_store_explicit(&ms_python_is_here, true, memory_order_relaxed);
}

static void python_find_reset(void)
{
    since = (struct ms_objects_since){0};
    atomic_flag_clear(&looking);
}
MS_AT_FORK(MS_FORK_STACK, python_find_reset);

void ms_python_configure(bool on)
{
    atomic_store_explicit(&is_on, on, memory_order_relaxed);
    atomic_store_explicit(&ms_python_is_here, on, memory_order_relaxed);
}

void ms_python_loop(uintptr_t *start_p, uintptr_t *end_p)
{
    const struct ms_python_interpreter *interpreter = atomic_load_explicit(&current, memory_order_acquire);
    *start_p = interpreter ? interpreter->symbols.loop : 0;
    *end_p = interpreter ? interpreter->symbols.loop_end : 0;
}
