/* test_reload.c - a library is unloaded and another loaded at its address, over and over, while threads take
 * stacks.
 *
 * The two have the same code but for the size of their frames, so that an outdated rule leads astray at once.
 * The loader's hooks are played by the test: they announce each dlopen and dlclose before it happens
 * (hooks/init.c). */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "base/objects/objects.h"
#include "base/store/store.h"
#include "tests/stack/snap.h"
#include "tests/tap.h"

enum { ROUNDS = 120, THREADS = 3 };

/* ThreadSanitizer does not see the lock of the loader, under which dlclose frees an object's entry of the
 * list and dl_iterate_phdr calls back: it takes each entry that was read and is freed later for a race. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:ld-linux\n";
}

static atomic_bool stop;
static atomic_uint busy_different, busy_walks;

static void take(void *arg)
{
    snap_take(arg);
}

static atomic_uint recalled_different;

/* What a hook does, with the help of the stack before. */
static void take_id(void *arg)
{
    uintptr_t frames[64];
    const void *frame = __builtin_frame_address(0), *caller = __builtin_return_address(0);
    ms_stack_id id = ms_stack_capture(frame, caller);
    (void)arg;
    if (!id || id != ms_stack_intern(frames, ms_stack_walk(MS_WALK_UNWIND, frame, caller, frames, 64)))
        atomic_fetch_add(&recalled_different, 1);
    __asm__ volatile("" ::: "memory");
}

static void *stay_busy(void *arg)
{
    struct snap *snap = arg;
    for (unsigned depth = 0; !atomic_load(&stop); depth = (depth + 1) % 12) {
        frames_call(depth, FRAMES_SHAPES, take, snap);
        frames_call(depth, FRAMES_SHAPES, take_id, NULL);
        atomic_fetch_add(&busy_walks, 1);
        if (snap_difference(snap) >= 0)
            atomic_fetch_add(&busy_different, 1);
        usleep(200);
    }
    return NULL;
}

static void *open_plugin(const char *name)
{
    char path[4096];
    const char *directory = getenv("top_builddir");
    snprintf(path, sizeof path, "%s/tests/stack/%s", directory ? directory : ".", name);
    ms_objects_changed();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        bail("%s", dlerror());
    return library;
}

int main(void)
{
    static struct snap snap, snaps[THREADS];
    pthread_t threads[THREADS];
    uintptr_t last = 0;
    int same_place = 0, different = 0;
    unsigned least = SNAP_MAX;
    plan(5);
    if (!ms_table_reserve(MS_TABLE_NODES, 1))
        bail("no memory");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, stay_busy, &snaps[i]);
    for (int round = 0; round < ROUNDS; round++) {
        void *library = open_plugin(round % 2 ? "plugin_large.so" : "plugin_small.so");
        void (*call)(void (*)(void *), void *) =
            (void (*)(void (*)(void *), void *))dlsym(library, "plugin_call");
        for (int again = 0; again < 3; again++) {
            call(take, &snap);
            call(take_id, NULL);
            different += snap_difference(&snap) >= 0;
            least = snap.ours_count < least ? snap.ours_count : least;
        }
        same_place += (uintptr_t)call == last;
        last = (uintptr_t)call;
        ms_objects_changed();
        dlclose(library);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (same_place)
        ok(true, "the other library was loaded at the same address %d times", same_place);
    else
        skip(1, "the loader never used an address again");
    ok(different == 0 && least >= 6, "through the libraries: at least %u frames, all as libgcc has them",
       least);
    ok(atomic_load(&busy_walks) > 0, "other threads walked %u times meanwhile", atomic_load(&busy_walks));
    is_u64(atomic_load(&busy_different), 0, "... and found what libgcc does");
    is_u64(atomic_load(&recalled_different), 0, "stacks taken with the help of the one before are the same");
    return done();
}
