/* objects_scan.c - what the loader has loaded, as rows; see objects_scan.h.
 *
 * Floor 0. Everything is read inside a callback of dl_iterate_phdr, which holds the loader's list still. */
#include <elf.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/objects/objects_index.h"
#include "base/objects/objects_scan.h"
#include "base/thread/aux_stack.h"

enum {
    ROWS_FEW = MS_AUX_STACK_BUFFER_BYTES / sizeof(struct ms_object),
    ROWS_START = 4 * ROWS_FEW,
};

static char executable[MS_OBJECT_PATH_BYTES];

void ms_objects_learn_executable(void)
{
    if (!*executable)
        ms_file_executable(executable, sizeof executable);
}

/* Keeps the end of a path that is too long: the file's name says more than the root. */
static void store_path(char *into, const char *path)
{
    size_t length = strlen(path);
    if (length < MS_OBJECT_PATH_BYTES)
        memcpy(into, path, length + 1);
    else
        snprintf(into, MS_OBJECT_PATH_BYTES, "...%s", path + length - (MS_OBJECT_PATH_BYTES - 4));
}

static void name_object(struct ms_object *row, const char *name)
{
    char absolute[2 * MS_OBJECT_PATH_BYTES];
    size_t length;
    if (!name || !*name) {
        store_path(row->path, executable);
        return;
    }
    if (*name != '/' && strchr(name, '/') && getcwd(absolute, MS_OBJECT_PATH_BYTES)) {
        length = strlen(absolute);
        snprintf(absolute + length, sizeof absolute - length, "/%s",
                 strncmp(name, "./", 2) == 0 ? name + 2 : name);
        name = absolute;
    }
    store_path(row->path, name);
}

/* The GNU build-id among the notes of [notes, notes + bytes). */
static void find_build_id(struct ms_object *row, const char *notes, size_t bytes)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)notes;
        size_t name_bytes = ((size_t)note->n_namesz + 3) & ~(size_t)3;
        size_t data_bytes = ((size_t)note->n_descsz + 3) & ~(size_t)3;
        if (name_bytes + data_bytes > bytes - sizeof *note)
            return;
        const char *name = notes + sizeof *note;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            row->build_id_bytes =
                note->n_descsz < sizeof row->build_id ? (uint8_t)note->n_descsz : sizeof row->build_id;
            memcpy(row->build_id, name + name_bytes, row->build_id_bytes);
            return;
        }
        notes += sizeof *note + name_bytes + data_bytes;
        bytes -= sizeof *note + name_bytes + data_bytes;
    }
}

static bool is_loaded_readable(const struct dl_phdr_info *info, const ElfW(Phdr) * part)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type == PT_LOAD && (load->p_flags & PF_R) && part->p_vaddr >= load->p_vaddr &&
            part->p_vaddr + part->p_memsz <= load->p_vaddr + load->p_filesz)
            return true;
    }
    return false;
}

static void objects_scan_describe(struct ms_object *row, const struct dl_phdr_info *info)
{
    memset(row, 0, offsetof(struct ms_object, path));
    row->bias = info->dlpi_addr;
    row->start = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD) {
            row->start = start < row->start ? start : row->start;
            row->end = start + part->p_memsz > row->end ? start + part->p_memsz : row->end;
        } else if (part->p_type == PT_NOTE && part->p_align <= 4 && !row->build_id_bytes &&
                   is_loaded_readable(info, part)) {
            find_build_id(row, (const char *)(uintptr_t)start, part->p_memsz);
        }
    }
    name_object(row, info->dlpi_name);
}

bool ms_object_is(const struct ms_object *a, const struct ms_object *b)
{
    return a->start == b->start && a->end == b->end && a->bias == b->bias &&
           a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 &&
           strcmp(ms_file_name(a->path), ms_file_name(b->path)) == 0;
}

static void begin_anew(void *arg)
{
    struct ms_objects_scan *look = arg;
    look->is_all = true;
    look->count = look->seen_count = 0;
}

static int objects_scan_look_at(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct ms_objects_scan *look = arg;
    (void)bytes;
    if (look->count == look->capacity) {
        look->is_short = true;
        return 1;
    }
    struct ms_object *row = &look->rows[look->count];
    objects_scan_describe(row, info);
    uint32_t known = look->is_all ? ms_objects_index_find(row->start) : MS_OBJECTS_NONE;
    if (known == MS_OBJECTS_NONE || !ms_object_is(ms_object(known), row))
        look->count++;
    else if (look->seen_count < look->seen_capacity)
        look->seen[look->seen_count++] = known;
    else
        look->is_short = true;
    return look->is_short;
}

static void *objects_scan_take(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void ms_objects_scan_end(struct ms_objects_scan *look)
{
    if (look->rows && look->rows != look->few)
        munmap(look->rows, look->capacity * sizeof *look->rows);
    if (look->few)
        ms_aux_stack_give(look->few);
    if (look->seen)
        munmap(look->seen, look->seen_capacity * sizeof *look->seen);
    *look = (struct ms_objects_scan){.rows = NULL};
}

/* False where there is no room for all that came. */
static bool go(struct ms_objects_scan *look, const struct ms_objects_since *since)
{
    look->is_all = look->is_short = false;
    look->count = look->seen_count = 0;
    look->since = *since;
    ms_each_object_since(&look->since, begin_anew, objects_scan_look_at, look);
    return !look->is_short;
}

bool ms_objects_scan(struct ms_objects_scan *look, const struct ms_objects_since *since)
{
    *look = (struct ms_objects_scan){.few = ms_aux_stack_take(), .capacity = ROWS_FEW};
    look->rows = look->few;
    bool done = look->rows && go(look, since);
    for (size_t capacity = ROWS_START; !done; capacity *= 4) {
        ms_objects_scan_end(look);
        look->capacity = capacity;
        look->seen_capacity = ms_object_count() + capacity;
        look->rows = objects_scan_take(look->capacity * sizeof *look->rows);
        look->seen = objects_scan_take(look->seen_capacity * sizeof *look->seen);
        if (!look->rows || !look->seen) {
            ms_objects_scan_end(look);
            return false;
        }
        done = go(look, since);
    }
    return true;
}
