/* resolver.c - names for the addresses of one ELF file; see resolver.h.
 *
 * Floor 4, command line only. One libdwfl session per file, so that the memory of a large library's debug
 * information is given back before the next one is opened. */
#include "config.h"

#include "report/symbols/resolver.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "report/symbols/scopes.h"
#include "report/symbols/symtab.h"

#ifdef MS_HAVE_DEMANGLE
/* The Itanium C++ ABI's demangler; the result is malloc's. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length_p, int *status_p);
#endif

/* As deep as blocks and inlined functions may lie in each other. */
enum { SCOPES_MAX = 256 };

/* A stretch of code and the compilation unit it came from. */
struct range {
    Dwarf_Addr start, end;
    Dwarf_Die *unit;
};

struct ms_resolver {
    Dwfl *dwfl;
    Dwfl_Module *module;
    GElf_Addr elf_bias; /* dwfl address = address in the file + this */
    char *debug_path;   /* libdwfl keeps a pointer to this pointer */
    Dwfl_Callbacks callbacks;
    char **owned; /* strings handed out */
    size_t owned_count;
    struct range *ranges; /* sorted; made when first needed */
    size_t range_count;
    bool ranges_made;
    struct ms_scopes scopes;
    struct ms_symtab symbols; /* read when first needed */
    bool symbols_read;
};

static const char *resolver_keep(struct ms_resolver *resolver, char *text)
{
    char **grown = text ? realloc(resolver->owned, (resolver->owned_count + 1) * sizeof(*grown)) : NULL;

    if (!grown) {
        free(text);
        return NULL;
    }
    resolver->owned = grown;
    resolver->owned[resolver->owned_count++] = text;
    return text;
}

static const char *readable_name(struct ms_resolver *resolver, const char *name)
{
#ifdef MS_HAVE_DEMANGLE
    int status = -1;
    char *plain = name && !strncmp(name, "_Z", 2) ? __cxa_demangle(name, NULL, NULL, &status) : NULL;

    if (plain && status == 0)
        return resolver_keep(resolver, plain);
#else
    (void)resolver;
#endif
    return name;
}

static bool build_id_equals(Elf *elf, const char *recorded)
{
    const unsigned char *bytes;
    const void *note;
    ssize_t count = dwelf_elf_gnu_build_id(elf, &note);
    char hex[3];
    ssize_t i;

    if (!*recorded)
        return true;
    if (count <= 0 || strlen(recorded) != 2 * (size_t)count)
        return false;
    for (i = 0, bytes = note; i < count; i++) {
        snprintf(hex, sizeof(hex), "%02x", bytes[i]);
        if (strncasecmp(hex, recorded + 2 * i, 2))
            return false;
    }
    return true;
}

static char *debug_search_path(const struct ms_symbol_places *places)
{
    const char *sysroot = places->sysroot ? places->sysroot : "";
    char *path;

    /* The leading empty entry is the file's own directory; '-' would skip the checksum, which we want. */
    if (places->debug_path ? asprintf(&path, ":.debug:%s:%s/usr/lib/debug", places->debug_path, sysroot) < 0
                           : asprintf(&path, ":.debug:%s/usr/lib/debug", sysroot) < 0)
        return NULL;
    return path;
}

/* True if libdwfl may open this name, if there is such a file: it would wait for a pipe. */
static bool is_safe(const char *directory, const char *sub, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if ((size_t)snprintf(path, sizeof(path), "%s%s%s%s", directory, *directory ? "/" : "", sub, name) >=
        sizeof(path))
        return false;
    return stat(path, &st) < 0 || S_ISREG(st.st_mode);
}

/* A file names its separate debug information, and lies where its owner wants it to: the places that libdwfl
 * tries beside it are looked at first. */
static int find_debuginfo(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
                          const char *file, const char *debuglink, GElf_Word crc, char **debuginfo_p)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    char *directory = slash ? strndup(file, (size_t)(slash - file)) : strdup("");
    bool safe = directory != NULL;

    if (safe && debuglink)
        safe = *debuglink == '/'
                   ? is_safe("", "", debuglink)
                   : is_safe(directory, "", debuglink) && is_safe(directory, ".debug/", debuglink);
    free(directory);
    return safe ? dwfl_standard_find_debuginfo(module, user_data, name, base, file, debuglink, crc,
                                               debuginfo_p)
                : -1;
}

static enum ms_resolver_status resolver_begin(struct ms_resolver *resolver, const char *file, int fd,
                                              const char *build_id)
{
    Elf *elf;

    resolver->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &resolver->debug_path,
    };
    resolver->dwfl = dwfl_begin(&resolver->callbacks);
    if (!resolver->dwfl) {
        close(fd);
        return MS_RESOLVER_BROKEN;
    }
    resolver->module = dwfl_report_offline(resolver->dwfl, file, file, fd); /* takes fd on success */
    if (!resolver->module)
        close(fd);
    dwfl_report_end(resolver->dwfl, NULL, NULL);
    elf = resolver->module ? dwfl_module_getelf(resolver->module, &resolver->elf_bias) : NULL;
    if (!elf)
        return MS_RESOLVER_BROKEN;
    return build_id_equals(elf, build_id) ? MS_RESOLVER_OK : MS_RESOLVER_MISMATCH;
}

enum ms_resolver_status ms_resolver_open(const char *path, const char *build_id,
                                         const struct ms_symbol_places *places,
                                         struct ms_resolver **resolver_p)
{
    enum ms_resolver_status status = MS_RESOLVER_BROKEN;
    struct ms_resolver *resolver;
    struct stat st;
    char *file;
    int fd;

    if (asprintf(&file, "%s%s", places->sysroot ? places->sysroot : "", path) < 0)
        return MS_RESOLVER_BROKEN;
    fd = ms_file_open_regular(file, &st); /* the report may be somebody else's, and name a device */
    if (fd < 0) {
        status = errno == EINVAL || errno == EISDIR ? MS_RESOLVER_BROKEN : MS_RESOLVER_MISSING;
        free(file);
        return status;
    }
    unsetenv("DEBUGINFOD_URLS"); /* libdwfl would ask the network */
    resolver = calloc(1, sizeof(*resolver));
    if (resolver) {
        resolver->debug_path = debug_search_path(places);
        status = resolver_begin(resolver, file, fd, build_id);
        if (status != MS_RESOLVER_OK)
            ms_resolver_close(resolver);
        else
            *resolver_p = resolver;
    } else {
        close(fd);
    }
    free(file);
    return status;
}

void ms_resolver_close(struct ms_resolver *resolver)
{
    size_t i;

    if (resolver->dwfl)
        dwfl_end(resolver->dwfl);
    for (i = 0; i < resolver->owned_count; i++)
        free(resolver->owned[i]);
    free(resolver->owned);
    free(resolver->ranges);
    ms_scopes_free(&resolver->scopes);
    ms_symtab_free(&resolver->symbols);
    free(resolver->debug_path);
    free(resolver);
}

/* The state of a file by its size and its last change, added to `state`; "" if it is gone. */
static void add_state(const char *path, char *state, size_t bytes)
{
    size_t length = strlen(state);
    struct stat st;

    if (stat(path, &st) < 0 ||
        (size_t)snprintf(state + length, bytes - length, " %lld %lld.%09ld", (long long)st.st_size,
                         (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec) >= bytes - length)
        *state = '\0';
}

void ms_resolver_state(struct ms_resolver *resolver, char *state, size_t bytes)
{
    const char *file = NULL, *debug = NULL;
    Dwarf_Addr bias;

    snprintf(state, bytes, "%s", PACKAGE_VERSION);
    dwfl_module_getdwarf(resolver->module, &bias); /* looks for separate debug information */
    dwfl_module_info(resolver->module, NULL, NULL, NULL, NULL, NULL, &file, &debug);
    if (!file) {
        *state = '\0';
        return;
    }
    add_state(file, state, bytes);
    if (*state && debug)
        add_state(debug, state, bytes);
}

static bool add_range(struct ms_resolver *resolver, const struct range *range)
{
    struct range *grown;
    size_t count = resolver->range_count;

    if (!(count & (count - 1))) { /* full: capacities are powers of two */
        grown = realloc(resolver->ranges, (count ? 2 * count : 1) * sizeof(*grown));
        if (!grown)
            return false;
        resolver->ranges = grown;
    }
    resolver->ranges[resolver->range_count++] = *range;
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static void make_ranges(struct ms_resolver *resolver)
{
    Dwarf_Addr bias, base;
    Dwarf_Die *unit = NULL;
    struct range range;

    resolver->ranges_made = true;
    while ((unit = dwfl_module_nextcu(resolver->module, unit, &bias))) {
        ptrdiff_t offset = 0;

        range.unit = unit;
        while ((offset = dwarf_ranges(unit, offset, &base, &range.start, &range.end)) > 0)
            if (range.start < range.end && !add_range(resolver, &range))
                return;
    }
    qsort(resolver->ranges, resolver->range_count, sizeof(range), compare_ranges);
}

static Dwarf_Die *find_in_ranges(struct ms_resolver *resolver, Dwarf_Addr pc)
{
    size_t low = 0, high;

    if (!resolver->ranges_made)
        make_ranges(resolver);
    high = resolver->range_count;
    while (low < high) { /* the first that starts behind pc */
        size_t middle = low + (high - low) / 2;

        if (resolver->ranges[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low && pc < resolver->ranges[low - 1].end ? resolver->ranges[low - 1].unit : NULL;
}

/* The compilation unit of an address. Compilers other than gcc leave out the index that libdwfl looks in
 * first, and to ask every unit for every address takes minutes in a large library. */
static Dwarf_Die *find_unit(struct ms_resolver *resolver, Dwarf_Addr address, Dwarf_Addr *bias_p)
{
    Dwarf_Die *unit = dwfl_module_addrdie(resolver->module, address, bias_p);

    if (unit || !dwfl_module_getdwarf(resolver->module, bias_p))
        return unit;
    return find_in_ranges(resolver, address - *bias_p);
}

static const char *function_name(struct ms_resolver *resolver, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;

    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    if (!name && dwarf_attr_integrate(die, DW_AT_name, &attribute))
        name = dwarf_formstring(&attribute);
    return readable_name(resolver, name);
}

/* Takes "x/.." and "." out of an absolute path, in place. */
static void tidy(char *path)
{
    char *from = path, *to = path;

    while (*from) {
        size_t length = strcspn(from + 1, "/") + 1; /* of "/name" */

        if (length == 3 && !strncmp(from, "/..", 3)) {
            while (to > path && *--to != '/')
                ;
        } else if (length > 1 && !(length == 2 && from[1] == '.')) {
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    *to = '\0';
}

/* The shorter spelling if it is the same file; behind a symbolic link "x/.." leads elsewhere. */
static const char *tidied(struct ms_resolver *resolver, const char *path)
{
    char *shorter = path && strstr(path, "/.") ? strdup(path) : NULL;
    struct stat st, other;

    if (!shorter)
        return path;
    tidy(shorter);
    if (stat(path, &st) == 0 && stat(shorter, &other) == 0 && st.st_ino == other.st_ino &&
        st.st_dev == other.st_dev)
        return resolver_keep(resolver, shorter);
    free(shorter);
    return path;
}

/* A source path as the compiler was given it, made absolute by the directory it ran in. */
static const char *source_path(struct ms_resolver *resolver, Dwarf_Die *unit, const char *path)
{
    Dwarf_Attribute attribute;
    const char *directory = NULL;
    char *joined;

    if (!path || *path == '/' || !strcmp(path, "???"))
        return path && *path == '/' ? path : NULL;
    if (dwarf_attr(unit, DW_AT_comp_dir, &attribute))
        directory = dwarf_formstring(&attribute);
    if (!directory || asprintf(&joined, "%s/%s", directory, path) < 0)
        return path;
    return tidied(resolver, resolver_keep(resolver, joined));
}

static bool unsigned_attribute(Dwarf_Die *die, unsigned name, Dwarf_Word *value_p)
{
    Dwarf_Attribute attribute;

    return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, value_p) == 0;
}

/* From the function that was inlined to the place it was inlined at. File 0 is a file like others since
 * DWARF 5. */
static void step_to_call(struct ms_resolver *resolver, Dwarf_Die *unit, Dwarf_Die *inlined,
                         struct ms_location *at)
{
    Dwarf_Files *files;
    Dwarf_Word file, line;
    size_t count;

    at->line = unsigned_attribute(inlined, DW_AT_call_line, &line) ? (int)line : 0;
    at->file = NULL;
    if (unsigned_attribute(inlined, DW_AT_call_file, &file) && dwarf_getsrcfiles(unit, &files, &count) == 0 &&
        file < count)
        at->file = source_path(resolver, unit, dwarf_filesrc(files, file, NULL, NULL));
}

/* From the innermost part of its function outwards: inlined functions, and blocks, which have no name. */
static size_t walk_scopes(struct ms_resolver *resolver, Dwarf_Die *unit, Dwarf_Addr pc, struct ms_location at,
                          struct ms_location *locations, size_t max)
{
    Dwarf_Die chain[SCOPES_MAX];
    size_t count = 0, i = ms_scopes_find(&resolver->scopes, unit, pc, chain, SCOPES_MAX);

    while (i-- > 0 && count < max) {
        int tag = dwarf_tag(&chain[i]);

        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram && tag != DW_TAG_entry_point)
            continue;
        at.function = function_name(resolver, &chain[i]);
        at.inlined = tag == DW_TAG_inlined_subroutine;
        locations[count++] = at;
        if (!at.inlined)
            break;
        step_to_call(resolver, unit, &chain[i], &at);
    }
    if (count)
        locations[count - 1].inlined = false;
    return count;
}

/* The ELF symbol that covers an address; the nearest one before it would be a wrong name in a stripped
 * file. */
static const char *symbol_name(struct ms_resolver *resolver, GElf_Addr address)
{
    const char *name;

    if (!resolver->symbols_read)
        ms_symtab_read(&resolver->symbols, resolver->module);
    resolver->symbols_read = true;
    name = ms_symtab_find(&resolver->symbols, address);
    return name ? readable_name(resolver, name) : NULL;
}

size_t ms_resolver_lookup(struct ms_resolver *resolver, uint64_t pc, struct ms_location *locations,
                          size_t max)
{
    GElf_Addr address = pc + resolver->elf_bias;
    struct ms_location at = {0};
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = find_unit(resolver, address, &bias);
    Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, address - bias) : NULL;
    size_t count = 0;

    if (line) {
        at.file = source_path(resolver, unit, dwarf_linesrc(line, NULL, NULL));
        dwarf_lineno(line, &at.line);
    }
    if (unit)
        count = walk_scopes(resolver, unit, address - bias, at, locations, max);
    if (!count) {
        at.function = symbol_name(resolver, address);
        if ((at.function || at.file) && max)
            locations[count++] = at;
    }
    return count;
}
