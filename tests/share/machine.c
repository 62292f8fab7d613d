/* machine.c - a made-up machine, preloaded beside memshim: what /proc/meminfo and the control groups say
 * there. MACHINE_AVAILABLE is the memory in MiB that is available while nobody uses the simulated device,
 * whose memory is the machine's; MACHINE_GROUP is a directory that stands for /sys/fs/cgroup, in which the
 * process is in the group /box. Each reading is counted in MACHINE_READINGS, a file of that many bytes. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOTAL_MIB = 4096 };

static int pretend(const char *text)
{
    int fd = memfd_create("machine", MFD_CLOEXEC);

    if (write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        abort();
    return fd;
}

static long long used_kib(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    long long (*count)(const char *) =
        driver ? (long long (*)(const char *))dlsym(driver, "memsim_count") : NULL;

    return count ? (count("used_bytes") + count("others_bytes")) >> 10 : 0;
}

static int meminfo(void)
{
    const char *available = getenv("MACHINE_AVAILABLE"), *readings = getenv("MACHINE_READINGS");
    char text[160];

    if (readings) {
        int fd = openat(AT_FDCWD, readings, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (write(fd, ".", 1) != 1)
            abort();
        close(fd);
    }
    snprintf(text, sizeof text,
             "MemTotal:       %9d kB\nMemFree:            1000 kB\nMemAvailable:   %9lld kB\n",
             TOTAL_MIB << 10, ((available ? atoll(available) : TOTAL_MIB) << 10) - used_kib());
    return pretend(text);
}

static int machine_open(const char *path, int flags, mode_t mode)
{
    static const char groups[] = "/sys/fs/cgroup";
    const char *group = getenv("MACHINE_GROUP");
    char there[4096];

    if (strcmp(path, "/proc/meminfo") == 0)
        return meminfo();
    if (group && strcmp(path, "/proc/self/cgroup") == 0)
        return pretend("1:name=systemd:/other\n0::/box\n");
    if (group && strncmp(path, groups, strlen(groups)) == 0) {
        snprintf(there, sizeof there, "%s%s", group, path + strlen(groups));
        path = there;
    }
    return openat(AT_FDCWD, path, flags, mode);
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return machine_open(path, flags, mode);
}

__attribute__((visibility("default"))) int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return machine_open(path, flags, mode);
}
