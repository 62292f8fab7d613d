/* test_harm.c - the ways in which the packaged libunwind does harm to a host, each of which was seen: ours
 * must do none.
 *
 *   1. In a thread that a library's constructor waits for, the first walk must not wait for the loader.
 *   2. No file descriptor is opened, not even while walking through code without unwind information.
 *   3. After a library was unloaded and another loaded in its place, no old rule is used: test_reload.c.
 *   4. libmemshim.so needs the C library alone, and offers nobody its unwinder. */
#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/stack/snap.h"
#include "tests/tap.h"

static uintptr_t frames[SNAP_MAX];
static atomic_uint walked;

static MS_NOINLINE void walk(void)
{
    atomic_store(&walked, ms_stack_walk(MS_WALK_UNWIND, __builtin_frame_address(0),
                                        __builtin_return_address(0), frames, SNAP_MAX));
}

static void *walk_in_thread(void *arg)
{
    walk();
    return arg;
}

static const char *built(const char *name)
{
    static char path[4096];
    const char *directory = getenv("top_builddir");
    snprintf(path, sizeof path, "%s/%s", directory ? directory : ".", name);
    return path;
}

/* Must come first: it is the first walk of a process that used to wait. */
static void test_constructor(void)
{
    char address[32];
    snprintf(address, sizeof address, "%lx", (unsigned long)(uintptr_t)walk_in_thread);
    setenv("JOINER_CALLS", address, 1);
    alarm(30);
    void *library = dlopen(built("tests/stack/joiner.so"), RTLD_NOW);
    alarm(0);
    if (!library)
        bail("%s", dlerror());
    ok(atomic_load(&walked) >= 2, "first walk in a thread that a constructor waits for: %u frames",
       atomic_load(&walked));
}

static int count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

#if defined(__x86_64__)
/* No frame pointer and no table: push $0; call *%rdi; pop %rax; ret */
static const unsigned char code[] = {0x6a, 0x00, 0xff, 0xd7, 0x58, 0xc3};
#elif defined(__aarch64__)
static const unsigned char code[] = {0xfe, 0x0f, 0x1f, 0xf8, 0x00, 0x00, 0x3f, 0xd6,
                                     0xfe, 0x07, 0x41, 0xf8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static void walk_through_made_code(void)
{
    void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    mprotect(made, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(made, (char *)made + sizeof code);
    ((void (*)(void (*)(void)))made)(walk);
    munmap(made, 4096);
}

/* As a daemon does: closes the low descriptors and opens its own file there. */
static void test_descriptors(void)
{
    char path[] = "/tmp/memshim-harm.XXXXXX";
    int before = count_descriptors();
    for (int i = 0; i < 20; i++) {
        walk_through_made_code();
        walk();
    }
    is_int(count_descriptors(), before, "no descriptor was opened");
    int file = mkstemp(path);
    for (int i = 0; i < 20; i++)
        walk_through_made_code();
    is_int(lseek(file, 0, SEEK_END), 0, "nothing was written into the host's file");
    close(file);
    unlink(path);
}

static unsigned count_lines(const char *command)
{
    FILE *output = popen(command, "r");
    char line[1024];
    unsigned count = 0;
    while (fgets(line, sizeof line, output))
        count++;
    pclose(output);
    return count;
}

static void test_library(void)
{
    char command[8192];
    const char *library = built("libmemshim.so");
    if (access(library, R_OK) != 0) {
        skip(3, "libmemshim.so is not built here");
        return;
    }
    /* The loader is a part of it, and has what the compiler's checks of the stack ask for on aarch64. */
    snprintf(command, sizeof command,
             "readelf -d '%s' | grep NEEDED | grep -vE '\\[(libc\\.so\\.6|ld-linux[^]]*)\\]'", library);
    is_u64(count_lines(command), 0, "needs the C library alone");
    snprintf(command, sizeof command, "nm -D '%s' | grep -E 'unw_|_U(x86_64|aarch64)|_Unwind|lzma|backtrace'",
             library);
    is_u64(count_lines(command), 0, "neither offers nor asks for an unwinder or a decompressor");
    snprintf(command, sizeof command, "readelf -d '%s' | grep -E 'SONAME' | grep -v 'libmemshim\\.so'",
             library);
    is_u64(count_lines(command), 0, "has no name but its own");
}

int main(void)
{
    plan(6);
    test_constructor();
    test_descriptors();
    test_library();
    return done();
}
