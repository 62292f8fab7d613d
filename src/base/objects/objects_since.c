/* objects_since.c - the loader's list from where it was left; see objects.h.
 *
 * Floor 0. The list is only ever added to at its end, so that what came since stands behind what was the
 * last, as long as nothing was taken off it. Its links are read inside a callback of dl_iterate_phdr, which
 * holds it still. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/libc.h"
#include "base/objects/objects.h"
#include "base/objects/objects_scan.h"

enum { PARTS_MAX = 32 };

struct going {
    struct ms_objects_since *since;
    int (*callback)(struct dl_phdr_info *, size_t, void *);
    void (*anew)(void *);
    void *arg;
    bool is_all, has_begun;
    int result; /* of the callback */
};

/* Nothing here may be a fault in the host, whatever an object looks like. */
static bool read_safely(uintptr_t from, void *into, size_t bytes)
{
    struct iovec local = {into, bytes}, remote = {(void *)from, bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

/* The program headers lie behind the file's, which nearly all objects are mapped with. */
static bool are_where_said(const ElfW(Ehdr) * head, const ElfW(Phdr) * parts, uintptr_t bias, uintptr_t start)
{
    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (parts[i].p_type == PT_LOAD)
            return parts[i].p_offset == 0 && bias + parts[i].p_vaddr == start &&
                   head->e_phoff + head->e_phnum * sizeof *parts <= parts[i].p_filesz;
    }
    return false;
}

/* The beginning of an object: as a rule its headers, one behind the other, and less than a page. */
struct beginning {
    ElfW(Ehdr) head;
    ElfW(Phdr) parts[PARTS_MAX];
};
_Static_assert(sizeof(struct beginning) <= 4096, "no more is known to be mapped");

static bool read_beginning(const struct link_map *map, struct beginning *beginning)
{
    const ElfW(Ehdr) *head = &beginning->head;
    struct ms_libc_object found;
    if (!ms_libc_find_object((uintptr_t)map->l_ld, &found) || found.map != map ||
        !read_safely(found.start, beginning, sizeof *beginning) ||
        memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phentsize != sizeof *beginning->parts ||
        head->e_phnum > PARTS_MAX || head->e_phoff >= found.end - found.start)
        return false;
    if (head->e_phoff != sizeof *head &&
        !read_safely(found.start + head->e_phoff, beginning->parts, head->e_phnum * sizeof *beginning->parts))
        return false;
    return are_where_said(head, beginning->parts, map->l_addr, found.start);
}

/* An object by its place in the loader's list; what is told lasts until the next one. Several searches ask
 * for the same, and callbacks run in turn. */
static bool objects_since_tell(const struct link_map *map, struct dl_phdr_info *info)
{
    static struct beginning beginning;
    static struct {
        const struct link_map *map;
        unsigned long long adds, subs;
    } of;
    if (of.map != map || of.adds != info->dlpi_adds || of.subs != info->dlpi_subs) {
        of.map = NULL;
        if (!read_beginning(map, &beginning))
            return false;
        of.map = map;
        of.adds = info->dlpi_adds;
        of.subs = info->dlpi_subs;
    }
    info->dlpi_addr = map->l_addr;
    info->dlpi_name = map->l_name;
    info->dlpi_phdr = beginning.parts;
    info->dlpi_phnum = beginning.head.e_phnum;
    return true;
}

static int objects_since_go_on(struct dl_phdr_info *first, size_t bytes, void *arg)
{
    struct going *going = arg;
    struct ms_objects_since *since = going->since;
    struct dl_phdr_info info = {.dlpi_adds = first->dlpi_adds, .dlpi_subs = first->dlpi_subs};
    going->is_all = !since->last || since->subs != first->dlpi_subs;
    while (!going->is_all && !going->result && since->last->l_next) {
        since->last = since->last->l_next;
        if (objects_since_tell(since->last, &info))
            going->result = going->callback(&info, bytes < sizeof info ? bytes : sizeof info, going->arg);
        else
            going->is_all = true;
    }
    since->adds = first->dlpi_adds;
    return 1; /* the first of them is enough to hold the list */
}

/* The last object of the list that begins with the program, or NULL. */
static const struct link_map *last_of(const struct dl_phdr_info *program)
{
    struct ms_libc_object found;
    if (!ms_libc_find_object((uintptr_t)program->dlpi_phdr, &found) ||
        found.map->l_addr != program->dlpi_addr)
        return NULL;
    const struct link_map *last = found.map;
    while (last->l_next)
        last = last->l_next;
    return last;
}

static int go_through(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct going *going = arg;
    if (!going->has_begun) {
        going->has_begun = true;
        *going->since = (struct ms_objects_since){info->dlpi_adds, info->dlpi_subs, last_of(info)};
        going->anew(going->arg);
    }
    return going->callback(info, bytes, going->arg);
}

int ms_objects_go_since(struct ms_objects_since *since, void (*anew)(void *arg),
                        int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    struct going going = {.since = since, .callback = callback, .anew = anew, .arg = arg};
    dl_iterate_phdr(objects_since_go_on, &going);
    if (going.is_all)
        going.result = dl_iterate_phdr(go_through, &going);
    if (going.result)
        since->last = NULL;
    return going.result;
}
