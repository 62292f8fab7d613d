/*
 * An arena: a wide window of addresses over one sparse file in memory, so that an offset in the file is an
 * address, the capacity of a device is a count and not a place, and another process can map what it is told
 * about. What is not handed out is inaccessible and holds no pages. Callers hold the memory lock for
 * writing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/cuda/sim.h"

/* Low descriptors belong to the program: it may count on them, or close all it knows of. */
#define LOWEST_FD 200

/* A file size limit would end the process with a signal; then the arena does without a file. */
static bool set_size(int fd, size_t bytes)
{
    sigset_t limit, before;
    struct timespec now = {0, 0};

    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    bool done = !ftruncate(fd, (off_t)bytes);
    if (!done && !sigismember(&before, SIGXFSZ))
        sigtimedwait(&limit, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

/** A file in memory of that name and size, out of the program's way; -1 if there is none to be had. */
int sim_memfd_open(const char *name, size_t bytes)
{
    int low = memfd_create(name, MFD_CLOEXEC);
    int fd;

    if (low < 0)
        return -1;
    fd = fcntl(low, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (fd < 0)
        fd = fcntl(low, F_DUPFD_CLOEXEC, 3);
    close(low);
    if (fd >= 0 && !set_size(fd, bytes)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool map_window(struct sim_arena *arena)
{
    int flags = MAP_NORESERVE | (arena->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
    size_t wide = arena->bytes + SIM_VMM_PAGE;
    char *window = mmap(NULL, wide, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (window == MAP_FAILED)
        return false;
    uintptr_t aligned = ((uintptr_t)window + SIM_VMM_PAGE - 1) & ~(SIM_VMM_PAGE - 1);
    arena->base = mmap((void *)aligned, arena->bytes, PROT_NONE, flags | MAP_FIXED, arena->fd, 0);
    if (arena->base != MAP_FAILED)
        return true;
    munmap(window, wide);
    return false;
}

/* As wide as is wanted, or as MEMSIM_WINDOW allows: twice a device's memory at least. */
static size_t allowed(size_t bytes)
{
    size_t most = sim_config.window_bytes, least = 2 * sim_heap_round(sim_config.memory_bytes);

    most = most && most < least ? least : most;
    return most && bytes > most ? most : bytes;
}

/** Opens a window of up to that many bytes (halved until the system grants it) over a file of that name, or
 * over none. */
CUresult sim_arena_open(struct sim_arena *arena, const char *name, size_t bytes)
{
    struct sim_hole *hole = malloc(sizeof *hole);
    struct stat st;

    bytes = allowed(bytes);
    for (; hole && bytes >= sim_config.granularity_bytes; bytes /= 2) {
        *arena =
            (struct sim_arena){.fd = name ? sim_memfd_open(name, bytes) : -1, .bytes = bytes, .holes = hole};
        if (map_window(arena)) {
            *hole = (struct sim_hole){.bytes = bytes};
            arena->inode = arena->fd >= 0 && !fstat(arena->fd, &st) ? st.st_ino : 0;
            arena->window.start = (uintptr_t)arena->base;
            arena->window.bytes = bytes;
            sim_range_insert(&sim_windows, &arena->window);
            return CUDA_SUCCESS;
        }
        if (arena->fd >= 0)
            close(arena->fd);
    }
    free(hole);
    *arena = (struct sim_arena){.fd = -1};
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/** Opens a window over a file of another process. Takes the descriptor; all of the window is accessible. */
CUresult sim_arena_adopt(struct sim_arena *arena, int fd)
{
    struct stat st;

    *arena = (struct sim_arena){.fd = fd};
    if (fstat(fd, &st) || st.st_size <= 0)
        goto failed;
    arena->bytes = (size_t)st.st_size;
    arena->inode = st.st_ino;
    if (!map_window(arena))
        goto failed;
    mprotect(arena->base, arena->bytes, PROT_READ | PROT_WRITE);
    arena->window.start = (uintptr_t)arena->base;
    arena->window.bytes = arena->bytes;
    sim_range_insert(&sim_windows, &arena->window);
    return CUDA_SUCCESS;
failed:
    close(fd);
    *arena = (struct sim_arena){.fd = -1};
    return CUDA_ERROR_INVALID_VALUE;
}

/** Gives the window and its memory back to the system. */
void sim_arena_close(struct sim_arena *arena)
{
    for (struct sim_hole *hole = arena->holes, *next; hole; hole = next) {
        next = hole->next;
        free(hole);
    }
    if (arena->base) {
        sim_range_remove(&sim_windows, &arena->window);
        munmap(arena->base, arena->bytes);
    }
    if (sim_arena_valid_fd(arena))
        close(arena->fd);
    *arena = (struct sim_arena){.fd = -1};
}

/* Takes a stretch out of a hole that has it. */
static bool take_from(struct sim_hole **link, size_t start, size_t bytes)
{
    struct sim_hole *hole = *link;
    size_t end = hole->offset + hole->bytes;

    if (start > hole->offset && start + bytes < end) {
        struct sim_hole *rest = malloc(sizeof *rest);
        if (!rest)
            return false;
        *rest = (struct sim_hole){start + bytes, end - start - bytes, hole->next};
        hole->next = rest;
        hole->bytes = start - hole->offset;
    } else if (start > hole->offset) {
        hole->bytes = start - hole->offset;
    } else if (hole->bytes > bytes) {
        hole->offset += bytes;
        hole->bytes -= bytes;
    } else {
        *link = hole->next;
        free(hole);
    }
    return true;
}

/** Finds room, lowest address first as the driver does. What is found is still inaccessible. */
bool sim_arena_take(struct sim_arena *arena, size_t bytes, size_t align, size_t *offset_p)
{
    for (struct sim_hole **link = &arena->holes; *link; link = &(*link)->next) {
        struct sim_hole *hole = *link;
        size_t start = (hole->offset + align - 1) & ~(align - 1);
        size_t end = hole->offset + hole->bytes;

        if (start > end || end - start < bytes)
            continue;
        *offset_p = start;
        return take_from(link, start, bytes);
    }
    return false;
}

/** As sim_arena_take, but at an offset, if there is room. */
bool sim_arena_take_at(struct sim_arena *arena, size_t offset, size_t bytes)
{
    for (struct sim_hole **link = &arena->holes; *link; link = &(*link)->next) {
        struct sim_hole *hole = *link;
        if (offset >= hole->offset && offset - hole->offset < hole->bytes)
            return bytes <= hole->bytes - (offset - hole->offset) && take_from(link, offset, bytes);
    }
    return false;
}

/** Takes back what sim_arena_take gave: its pages go, its addresses can no longer be touched. */
void sim_arena_give(struct sim_arena *arena, size_t offset, size_t bytes)
{
    struct sim_hole **link = &arena->holes, *before = NULL;

    /* by address and not by descriptor, which may no longer be ours */
    sim_arena_hide(arena, offset, bytes);
    for (; *link && (*link)->offset < offset; link = &(*link)->next)
        before = *link;
    struct sim_hole *after = *link;
    bool joins_after = after && offset + bytes == after->offset;
    if (before && before->offset + before->bytes == offset) {
        before->bytes += bytes + (joins_after ? after->bytes : 0);
        if (joins_after) {
            before->next = after->next;
            free(after);
        }
    } else if (joins_after) {
        after->offset = offset;
        after->bytes += bytes;
    } else {
        struct sim_hole *hole = malloc(sizeof *hole);
        if (!hole) /* the addresses are lost, nothing else */
            return;
        *hole = (struct sim_hole){offset, bytes, after};
        *link = hole;
    }
}

/** Makes a part accessible. */
bool sim_arena_show(struct sim_arena *arena, size_t offset, size_t bytes)
{
    return !mprotect(arena->base + offset, bytes, PROT_READ | PROT_WRITE);
}

/** Takes the pages of a part that stays handed out, and makes it inaccessible. */
void sim_arena_hide(struct sim_arena *arena, size_t offset, size_t bytes)
{
    mprotect(arena->base + offset, bytes, PROT_READ | PROT_WRITE);
    madvise(arena->base + offset, bytes, arena->fd < 0 ? MADV_DONTNEED : MADV_REMOVE);
    mprotect(arena->base + offset, bytes, PROT_NONE);
}

/** All of that is about to be written: on large pages, where the system has them for memory of this kind, it
 * takes a tenth of the time. Changes nothing else. Without a lock. */
void sim_arena_expect(CUdeviceptr address, size_t bytes)
{
    CUdeviceptr first = (address + SIM_VMM_PAGE - 1) & ~(CUdeviceptr)(SIM_VMM_PAGE - 1);
    CUdeviceptr end = (address + bytes) & ~(CUdeviceptr)(SIM_VMM_PAGE - 1);

    if (first < end)
        madvise((void *)(uintptr_t)first, end - first, MADV_HUGEPAGE);
}

/** True if the descriptor is still ours: a program may have closed all it found and opened something else
 * there. */
bool sim_arena_valid_fd(const struct sim_arena *arena)
{
    struct stat st;

    return arena->fd >= 0 && !fstat(arena->fd, &st) && st.st_ino == arena->inode;
}

/* The name that a descriptor's file was given when it was made, if the simulator made it. */
static bool read_name(int fd, char *name, size_t name_bytes)
{
    static const char prefix[] = "/memfd:memsim.";
    char path[64], target[256];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    const char *rest = target + sizeof prefix - 1;
    if (strncmp(target, prefix, sizeof prefix - 1) || strlen(rest) >= name_bytes)
        return false;
    strcpy(name, rest);
    return true;
}

/** A descriptor of our own for a file that another process gave us, if its name begins with kind; else -1. */
int sim_memfd_reopen(int fd, const char *kind)
{
    char name[64];

    if (!read_name(fd, name, sizeof name) || strncmp(name, kind, strlen(kind)))
        return -1;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/** The number at the end of the file's name: the ordinal of its device; -1 if there is none. */
int sim_memfd_number(int fd)
{
    char name[64];
    int number;

    return read_name(fd, name, sizeof name) && sscanf(name, "%*[a-z].%d", &number) == 1 ? number : -1;
}
