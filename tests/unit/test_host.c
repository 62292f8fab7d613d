/* test_host.c - what the host's memory has left, as machines of several kinds tell it: control groups of both
 * versions, with and without limits, in containers, and files that say nonsense. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quota/host.h"
#include "tests/tap.h"

#define MIB UINT64_C(1048576)

static char root[64];

static void put(const char *path, const char *text)
{
    char whole[400];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(whole, 0700) && errno != EEXIST)
            abort();
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        abort();
}

/* A machine of 8 GiB with 5 available. */
static void machine(const char *groups)
{
    const char *top = getenv("TEST_TMP");
    snprintf(root, sizeof root, "%.40s/hostXXXXXX", top ? top : "/tmp");
    if (!mkdtemp(root))
        abort();
    put("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:          100000 kB\n"
                         "MemAvailable:    5242880 kB\nBuffers:           20000 kB\n");
    if (groups)
        put("/proc/self/cgroup", groups);
}

static uint64_t group_left(void)
{
    struct ms_host host = {0};
    ok(ms_host_read(root, &host) && host.total_bytes == 8192 * MIB && host.available_bytes == 5120 * MIB,
       "the machine's memory");
    return host.group_bytes;
}

#define POD "/kubepods.slice/kubepods-burstable.slice/pod1.slice"

static void test_two(void)
{
    machine("0::" POD "/box.scope\n");
    is_u64(group_left(), UINT64_MAX, "version 2: no files, no limit");
    put("/sys/fs/cgroup" POD "/box.scope/memory.max", "max\n");
    put("/sys/fs/cgroup" POD "/box.scope/memory.current", "1048576000\n");
    is_u64(group_left(), UINT64_MAX, "max is no limit");
    put("/sys/fs/cgroup" POD "/box.scope/memory.max", "2147483648\n");
    is_u64(group_left(), 1048 * MIB, "a limit without what is used");
    put("/sys/fs/cgroup" POD "/box.scope/memory.stat",
        "anon 7\nfile 8\ninactive_file_not 99\ninactive_anon 5\ninactive_file 104857600\nactive_file 3\n");
    is_u64(group_left(), 1148 * MIB, "files that can be dropped are free");
    put("/sys/fs/cgroup" POD "/memory.max", "1073741824\n");
    put("/sys/fs/cgroup" POD "/memory.current", "1073741825\n");
    is_u64(group_left(), 0, "a group around it that is full leaves nothing");
    put("/sys/fs/cgroup" POD "/memory.max", "nonsense\n");
    is_u64(group_left(), 1148 * MIB, "nonsense is no limit");
    machine("0::/\n");
    put("/sys/fs/cgroup/memory.max", "104857600");
    put("/sys/fs/cgroup/memory.current", "0");
    is_u64(group_left(), 100 * MIB, "in a namespace the group is the topmost one");
}

static void test_one(void)
{
    machine("12:pids:/docker/abc\n5:cpu,memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/docker/abc\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "1\n");
    is_u64(group_left(), UINT64_MAX, "version 1: the largest number is no limit");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "314572800\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "209715200\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.stat", "inactive_file 4\ntotal_inactive_file 52428800\n");
    is_u64(group_left(), 150 * MIB, "a limit, used, and what can be dropped");
    machine("5:memory:/docker/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
    is_u64(group_left(), 200 * MIB, "in a container the path is the host's, and the topmost group its own");
}

static void test_strange(void)
{
    struct ms_host host;
    machine(NULL);
    is_u64(group_left(), UINT64_MAX, "no word about groups");
    machine("0::/a-name-that-is-longer-than-any-that-was-seen/a-name-that-is-longer-than-any-that-was-seen/"
            "a-name-that-is-longer-than-any-that-was-seen/a-name-that-is-longer-than-any-that-was-seen/"
            "a-name-that-is-longer-than-any-that-was-seen/a-name-that-is-longer-than-any-that-was-seen/"
            "a-name-that-is-longer-than-any-that-was-seen/"
            "a-name-that-is-longer-than-any-that-was-seen\n::\n:\n\n");
    is_u64(group_left(), UINT64_MAX, "a path that is too long, and lines that are none");
    put("/proc/meminfo", "MemTotal: 1 kB\n");
    ok(!ms_host_read(root, &host), "a kernel that does not say what is available");
    ok(!ms_host_read("/nowhere", &host), "no /proc");
    ok(ms_host_read("", &host) && host.total_bytes >= host.available_bytes && host.available_bytes,
       "and this machine");
}

int main(void)
{
    plan(0);
    test_two();
    test_one();
    test_strange();
    return done();
}
