/*
 * Reading what processes take of the devices: see usage.h. Goes through /proc each time; opens and closes
 * what it reads, keeps nothing. A process that ends meanwhile is passed over.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cuda/device/usage.h"

static bool is_usage(int directory, const char *name)
{
    static const char target[] = "/memfd:" SIM_USAGE_NAME;
    char link[64];
    ssize_t length = readlinkat(directory, name, link, sizeof link - 1);

    return length >= (ssize_t)sizeof target - 1 && !memcmp(link, target, sizeof target - 1);
}

static bool read_usage(int directory, const char *name, int pid, struct sim_usage *usage)
{
    int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : pread(file, usage, sizeof *usage, 0);

    if (file >= 0)
        close(file);
    return got == (ssize_t)sizeof *usage && usage->magic == SIM_USAGE_MAGIC && usage->pid == pid;
}

/* The first file of the process's own is the one: a library has a copy of the driver's rooms tell nothing. */
static bool usage_of(int pid, struct sim_usage *usage)
{
    bool found = false;
    char path[64];
    DIR *files;

    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    files = opendir(path);
    for (struct dirent *entry; files && !found && (entry = readdir(files));)
        found = isdigit((unsigned char)*entry->d_name) && is_usage(dirfd(files), entry->d_name) &&
                read_usage(dirfd(files), entry->d_name, pid, usage);
    if (files)
        closedir(files);
    return found;
}

void sim_usage_survey(void (*look)(void *arg, const struct sim_usage *usage), void *arg)
{
    DIR *processes = opendir("/proc");
    int saved_errno = errno;
    struct sim_usage usage;

    for (struct dirent *entry; processes && (entry = readdir(processes));)
        if (isdigit((unsigned char)*entry->d_name) && usage_of(atoi(entry->d_name), &usage))
            look(arg, &usage);
    if (processes)
        closedir(processes);
    errno = saved_errno;
}
