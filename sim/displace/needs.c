/* needs.c - which libraries a file needs, and where it looks for them; see displace.h. Files are read,
 * nothing is loaded. */
#include "sim/displace/displace.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const char *bytes;
    size_t size;
};

static const void *part(const struct image *image, size_t offset, size_t size)
{
    return offset <= image->size && size <= image->size - offset ? image->bytes + offset : NULL;
}

/* The offset at which an address lies in the file. */
static size_t offset_of(const struct image *image, const ElfW(Ehdr) * header, ElfW(Addr) address)
{
    const ElfW(Phdr) *segments = part(image, header->e_phoff, header->e_phnum * sizeof(*segments));
    size_t i;

    for (i = 0; segments && i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
            address - segments[i].p_vaddr < segments[i].p_filesz)
            return segments[i].p_offset + (address - segments[i].p_vaddr);
    return image->size;
}

static const char *text_at(const struct image *image, size_t strings, size_t offset)
{
    const char *text =
        strings < image->size && offset < image->size - strings ? image->bytes + strings + offset : NULL;

    return text && memchr(text, '\0', (size_t)(image->bytes + image->size - text)) ? text : NULL;
}

static void take(const struct image *image, size_t strings, const ElfW(Dyn) * entry, struct needs *needs)
{
    const char *text = text_at(image, strings, entry->d_un.d_val);
    char **grown;

    if (!text)
        return;
    if (entry->d_tag == DT_RUNPATH || (entry->d_tag == DT_RPATH && !needs->path)) {
        free(needs->path);
        needs->path = strdup(text);
        return;
    }
    grown = entry->d_tag == DT_NEEDED ? realloc(needs->names, (needs->count + 1) * sizeof(*grown)) : NULL;
    if (!grown)
        return;
    needs->names = grown;
    grown[needs->count] = strdup(text);
    if (grown[needs->count])
        needs->count++;
}

static void read_dynamic(const struct image *image, const ElfW(Ehdr) * header, struct needs *needs)
{
    const ElfW(Phdr) *segments = part(image, header->e_phoff, header->e_phnum * sizeof(*segments));
    const ElfW(Dyn) *dynamic = NULL;
    size_t i, count = 0, strings = image->size;

    for (i = 0; segments && i < header->e_phnum; i++)
        if (segments[i].p_type == PT_DYNAMIC) {
            count = segments[i].p_filesz / sizeof(*dynamic);
            dynamic = part(image, segments[i].p_offset, count * sizeof(*dynamic));
        }
    for (i = 0; dynamic && i < count && dynamic[i].d_tag != DT_NULL; i++)
        if (dynamic[i].d_tag == DT_STRTAB)
            strings = offset_of(image, header, dynamic[i].d_un.d_ptr);
    for (i = 0; dynamic && i < count && dynamic[i].d_tag != DT_NULL; i++)
        if (dynamic[i].d_tag == DT_NEEDED || dynamic[i].d_tag == DT_RUNPATH || dynamic[i].d_tag == DT_RPATH)
            take(image, strings, &dynamic[i], needs);
}

void needs_read(const char *file, struct needs *needs_p)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ElfW(Ehdr) * header;
    struct image image;
    struct stat st;
    void *bytes;

    *needs_p = (struct needs){NULL, 0, NULL};
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof(*header)) {
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            image = (struct image){bytes, (size_t)st.st_size};
            header = bytes;
            if (!memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
                header->e_phentsize == sizeof(ElfW(Phdr)))
                read_dynamic(&image, header, needs_p);
            munmap(bytes, (size_t)st.st_size);
        }
    }
    close(fd);
}

void needs_free(struct needs *needs)
{
    while (needs->count)
        free(needs->names[--needs->count]);
    free(needs->names);
    free(needs->path);
}

int needs_find(const char *path, const char *own, const char *name, char found[PATH_MAX])
{
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
    const char *slash = strrchr(own, '/');
    size_t i, length, skip;

    for (; path; path = path[length] ? path + length + 1 : NULL) {
        length = strcspn(path, ":");
        skip = 0;
        for (i = 0; i < sizeof(origins) / sizeof(*origins); i++)
            if (!strncmp(path, origins[i], strlen(origins[i])))
                skip = strlen(origins[i]);
        if (snprintf(found, PATH_MAX, "%.*s%.*s/%s", skip && slash ? (int)(slash - own) : 0, own,
                     (int)(length - skip), path + skip, name) < PATH_MAX &&
            access(found, R_OK) == 0)
            return 1;
    }
    return 0;
}
