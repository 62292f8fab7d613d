/* test_objects.c - the list of loaded objects: what is in it, what becomes of unloaded ones, and that asking
 * never waits for a constructor. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/libc.h"
#include "base/store/store.h"
#include "base/objects/objects.h"
#include "unwind/stack.h"
#include "tests/tap.h"

void plugin_constructed(const char *name);
const char *__tsan_default_suppressions(void);

/* The loader frees an object's name after it was taken off the list under a lock that ThreadSanitizer does
 * not see. */
const char *__tsan_default_suppressions(void)
{
    return "race:_dl_close_worker\n";
}

int __real_dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg);
int __wrap_dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg);

static char directory[512];

enum { COPIES = 200, STEPS = 600, AT_ONCE = 12 };

/* The linker puts it before the C library's (--wrap): counts the objects that were looked at. A sanitizer's
 * own start goes through it, before anything is watched. */
static unsigned long visits;
#if defined(__clang__)
#define UNWATCHED __attribute__((disable_sanitizer_instrumentation))
#else
#define UNWATCHED __attribute__((no_sanitize("thread", "address", "undefined")))
#endif

struct counted {
    int (*callback)(struct dl_phdr_info *, size_t, void *);
    void *arg;
};

UNWATCHED static int count_visit(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct counted *counted = arg;
    __atomic_fetch_add(&visits, 1, __ATOMIC_RELAXED);
    return counted->callback(info, bytes, counted->arg);
}

UNWATCHED int __wrap_dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    struct counted counted = {callback, arg};
    return __real_dl_iterate_phdr(count_visit, &counted);
}

void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);

static unsigned long mappings;

UNWATCHED void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    __atomic_fetch_add(&mappings, 1, __ATOMIC_RELAXED);
    return __real_mmap(address, bytes, protection, flags, fd, offset);
}

static const char *plugin_path(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/plugin_%s.so", directory, name);
    return path;
}

static atomic_bool wait_in_constructor, refreshed_meanwhile;

static void *refresh(void *arg)
{
    (void)arg;
    ms_objects_changed();
    ms_objects_refresh();
    refreshed_meanwhile = true;
    return NULL;
}

/* The loader is inside dlopen here, and waits for a thread that asks for the list. */
void plugin_constructed(const char *name)
{
    pthread_t thread;
    (void)name;
    if (!wait_in_constructor)
        return;
    pthread_create(&thread, NULL, refresh, NULL);
    pthread_join(thread, NULL);
}

static void test_own_row(void)
{
    uint32_t row = 99;
    ms_objects_refresh();
    const struct ms_object *object = ms_object_at((uintptr_t)&test_own_row, &row);
    ok(object && row == 0, "the executable is the first row");
    char path[512] = "";
    ok(readlink("/proc/self/exe", path, sizeof path - 1) > 0 && object && strcmp(object->path, path) == 0,
       "and has its resolved path");
    ok(object && object->bias <= object->start && object->start < object->end, "its addresses are in order");
    object = ms_object_at((uintptr_t)&gnu_get_libc_version, &row);
    ok(object && strstr(object->path, "libc.so.6") != NULL, "libc is another");
    ok(object && object->build_id_bytes >= 8, "with a build-id");
    ok(ms_object_at(16, &row) == NULL, "nothing lives at 16");
    uint32_t count = ms_object_count();
    ms_objects_refresh();
    is_u64(ms_object_count(), count, "asking again adds nothing");
    ok(ms_object(count) == NULL, "past the last row is nothing");
}

static void test_unloading(void)
{
    uint32_t row = 0, again = 0;
    void *library = dlopen(plugin_path("a"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        bail("%s", dlerror());
    uintptr_t address = (uintptr_t)dlsym(library, "plugin_function");
    ms_objects_refresh();
    const struct ms_object *object = ms_object_at(address, &row);
    ok(object && strstr(object->path, "plugin_a.so"), "a library opened later is listed");
    ok(object && !object->gone, "as loaded");
    ok(!ms_objects_any_gone(), "nothing went so far");
    is_u64(ms_object_generation(address), 0, "it is the first there");
    dlclose(library);
    ms_objects_refresh();
    if (!object->gone) { /* a sanitizer's runtime may keep libraries */
        skip(6, "the C library does not unload here");
        return;
    }
    ok(ms_object_at(address, &again) == object && again == row, "an unloaded library keeps its row");
    ok(ms_objects_any_gone(), "and it is known that something went");
    is_u64(ms_object_generation(address), 1, "what comes to its place is another");
    library = dlopen(plugin_path("a"), RTLD_NOW | RTLD_LOCAL);
    uintptr_t second = (uintptr_t)dlsym(library, "plugin_function");
    ms_objects_refresh();
    if (second == address) {
        ok(ms_object_at(address, &again) == object && !object->gone,
           "the same library at the same place is the same row");
        is_u64(ms_object_generation(address), 0, "of the same generation");
    } else {
        skip(2, "the kernel put it elsewhere");
    }
    dlclose(library);
    ok(true, "closed again");
}

static ms_stack_id captured;

static void capture(void)
{
    captured = ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
}

static ms_stack_id capture_in(const char *name, uintptr_t *address_p)
{
    void *library = dlopen(plugin_path(name), RTLD_NOW | RTLD_LOCAL);
    int (*function)(void (*callback)(void)) = (int (*)(void (*)(void)))dlsym(library, "plugin_function");
    *address_p = (uintptr_t)function;
    ms_objects_changed();
    function(capture);
    dlclose(library);
    ms_objects_changed();
    return captured;
}

/* The same addresses, the same callers, another library: it must be another stack. */
static void test_replacement(void)
{
    uintptr_t first_address, second_address, frame;
    uint32_t generation, row;
    ms_stack_id parent;
    ms_stack_id first = capture_in("a", &first_address);
    ms_stack_id second = capture_in("b", &second_address);
    if (first_address != second_address) {
        skip(3, "the kernel put the second library elsewhere");
        return;
    }
    ok(first != second, "a stack through a library is not one through its successor");
    ms_stack_node(first, &parent, &frame, &generation);
    const struct ms_object *object = ms_object_of(frame, generation, &row);
    ok(object && strstr(object->path, "plugin_a.so"), "the first is named after the first library");
    ms_stack_node(second, &parent, &frame, &generation);
    object = ms_object_of(frame, generation, &row);
    ok(object && strstr(object->path, "plugin_b.so"), "the second after the second");
}

static void test_constructor(void)
{
    alarm(20); /* a deadlock ends the test, and fails it */
    wait_in_constructor = true;
    void *library = dlopen(plugin_path("b"), RTLD_NOW | RTLD_LOCAL);
    ok(library && refreshed_meanwhile, "a constructor can wait for a thread that asks for the list");
    wait_in_constructor = false;
    alarm(0);
}

static void *open_and_close(void *arg)
{
    for (int i = 0; i < 200; i++) {
        void *library = dlopen(plugin_path(arg), RTLD_NOW | RTLD_LOCAL);
        ms_objects_refresh();
        dlclose(library);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t opener;
    uint32_t row;
    pthread_create(&opener, NULL, open_and_close, (void *)"a");
    for (int i = 0; i < 2000; i++)
        ms_objects_refresh();
    pthread_join(opener, NULL);
    ms_objects_refresh();
    ok(ms_object_at((uintptr_t)&test_threads, &row) && row == 0,
       "loading in one thread and asking in another agree");
    ok(ms_object_count() < 400 + COPIES + STEPS,
       "the same library at the same places does not make rows without end (%u)", ms_object_count());
    ms_store_reset();
    ms_objects_reset();
    is_u64(ms_object_count(), 0, "a child starts empty");
    ms_objects_refresh();
    ok(ms_object_at((uintptr_t)&test_threads, &row) && row == 0, "and learns anew");
}

static const char *copy_path(int number)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/plugin_%d.so", getenv("TEST_TMP"), number);
    return path;
}

static void make_copies(void)
{
    char command[1400];
    for (int i = 0; i < COPIES; i++) {
        snprintf(command, sizeof command, "cp '%s' '%s'", plugin_path("a"), copy_path(i));
        if (system(command) != 0)
            bail("no copy of the plugin");
    }
}

/* The rows that lie in pages of their own may be touched, or not. */
static void protect_rows(uint32_t count, int how)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)ms_object(0) + page - 1) & ~(page - 1);
    uintptr_t to = (uintptr_t)(ms_object(0) + count) & ~(page - 1);
    if (to > from && mprotect((void *)from, to - from, how) != 0)
        bail("mprotect: %s", strerror(errno));
}

/* Whether the loader's list can be gone on with (objects_since.c). */
static bool may_read(void)
{
    char from = 1, to = 0;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/* One library after the other, none of which is closed: each costs what it is, and not what came before. */
static void test_many(void)
{
    void *libraries[COPIES];
    unsigned long before, mapped_before, looked_at = 0, mapped = 0;
    bool goes_on = may_read();
    bool listed = true;
    uint32_t row;
    if (!ms_libc_finds_objects()) {
        skip(4, "this C library does not find objects");
        return;
    }
    make_copies();
    ms_objects_refresh();
    for (int i = 0; i < COPIES; i++) {
        void *library = libraries[i] = dlopen(copy_path(i), RTLD_NOW | RTLD_LOCAL);
        uint32_t count = ms_object_count();
        if (!library)
            bail("%s", dlerror());
        before = visits;
        mapped_before = mappings;
        if (goes_on)
            protect_rows(count, PROT_NONE); /* whoever looks at any is ended by a signal */
        ms_objects_refresh();
        protect_rows(count, PROT_READ | PROT_WRITE);
        looked_at += visits - before;
        mapped += mappings - mapped_before;
        const struct ms_object *object = ms_object_at((uintptr_t)dlsym(library, "plugin_function"), &row);
        listed = listed && ms_object_count() == count + 1 && row == count && object && !object->gone &&
                 strcmp(object->path, copy_path(i)) == 0 && object->build_id_bytes;
    }
    for (int i = 0; i < COPIES; i++)
        dlclose(libraries[i]);
    ok(listed, "each of many libraries is listed");
    if (!goes_on) {
        skip(3, "without process_vm_readv, as under qemu, all objects are gone through each time");
        return;
    }
    ok(true, "none of the rows before was looked at");
    ok(mapped <= COPIES / 10, "and hardly anything was mapped: %lu times for %d", mapped, COPIES);
    ok(looked_at <= 3 * COPIES, "nor was any object that was known: %lu looks at %d", looked_at, COPIES);
}

/* Opened and closed in any order: what is open is at its place, and what is not is gone. */
static void test_any_order(void)
{
    void *libraries[AT_ONCE] = {NULL};
    uintptr_t places[AT_ONCE] = {0};
    unsigned wrong = 0, seed = 4711;
    uint32_t row;
    if (!ms_libc_finds_objects())
        make_copies();
    for (int i = 0; i < STEPS; i++) {
        int number = rand_r(&seed) % AT_ONCE;
        if (libraries[number]) {
            dlclose(libraries[number]);
            libraries[number] = NULL;
        } else {
            libraries[number] =
                dlopen(copy_path(number % 2 ? number : COPIES - 1 - number), RTLD_NOW | RTLD_LOCAL);
            places[number] = libraries[number] ? (uintptr_t)dlsym(libraries[number], "plugin_function") : 0;
        }
        if (rand_r(&seed) % 3)
            continue;
        ms_objects_refresh();
        for (int k = 0; k < AT_ONCE; k++) {
            const struct ms_object *object = libraries[k] ? ms_object_at(places[k], &row) : NULL;
            const char *path = copy_path(k % 2 ? k : COPIES - 1 - k);
            wrong += libraries[k] && (!object || object->gone || strcmp(object->path, path) != 0 ||
                                      ms_object_of(places[k], object->generation, &row) != object);
        }
    }
    ok(wrong == 0, "what is open is listed at its place: %u are not", wrong);
}

int main(void)
{
    plan(31);
    ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);
    directory[length > 0 ? length : 0] = '\0';
    *strrchr(directory, '/') = '\0';
    test_own_row();
    test_unloading();
    test_replacement();
    test_constructor();
    test_many();
    test_any_order();
    test_threads();
    return done();
}
