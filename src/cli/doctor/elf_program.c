/* elf_program.c - what a file says about how it will be run and how it reaches a GPU; see elf_program.h.
 *
 * Floor 5; libelf behind it. */
#include "cli/doctor/elf_program.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Text that every copy of the CUDA runtime carries in its table of errors, stripped or not. */
static const char runtime_mark[] = "cudaErrorCudartUnloading";
/* A variable that a copy of the simulated one reads. */
static const char simulated_mark[] = "MEMSIM_FAIL";

int ms_elf_own_machine(void)
{
#if defined(__x86_64__)
    return EM_X86_64;
#elif defined(__aarch64__)
    return EM_AARCH64;
#else
    return EM_NONE;
#endif
}

const char *ms_elf_machine_name(int machine)
{
    static char number[32];

    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "aarch64";
    case EM_386:
        return "x86 (32 bit)";
    case EM_ARM:
        return "arm (32 bit)";
    default:
        snprintf(number, sizeof(number), "machine %d", machine);
        return number;
    }
}

static void read_script(struct ms_elf_program *result, char *line)
{
    char *word = line + 2, *end;

    result->kind = MS_ELF_SCRIPT;
    word += strspn(word, " \t");
    end = word + strcspn(word, " \t\n");
    if (*end == ' ' || *end == '\t') {
        char *argument = end + strspn(end, " \t");

        argument[strcspn(argument, "\n")] = '\0';
        result->argument = *argument ? strdup(argument) : NULL;
    }
    *end = '\0';
    result->interpreter = strdup(word);
}

static void add_needed(struct ms_elf_program *result, const char *name)
{
    char **grown = realloc(result->needed, (result->needed_count + 1) * sizeof(*grown));

    if (!grown)
        return;
    result->needed = grown;
    result->needed[result->needed_count] = strdup(name);
    result->needed_count += result->needed[result->needed_count] != NULL;
}

static void set_once(char **text_p, const char *text)
{
    if (!*text_p)
        *text_p = strdup(text);
}

static void read_dynamic(struct ms_elf_program *result, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t i, count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    GElf_Dyn entry;

    for (i = 0; data && i < count && gelf_getdyn(data, (int)i, &entry) && entry.d_tag != DT_NULL; i++) {
        const char *text = elf_strptr(elf, header->sh_link, entry.d_un.d_val);

        if (entry.d_tag == DT_NEEDED && text)
            add_needed(result, text);
        else if (entry.d_tag == DT_SONAME && text)
            set_once(&result->soname, text);
        else if (entry.d_tag == DT_RPATH && text)
            set_once(&result->rpath, text);
        else if (entry.d_tag == DT_RUNPATH && text)
            set_once(&result->runpath, text);
    }
}

static void count_import(struct ms_elf_program *result, const char *name)
{
    if (!strcmp(name, "dlopen") || !strcmp(name, "dlmopen"))
        result->opens = true;
    else if (!strncmp(name, "cuda", 4) && isupper((unsigned char)name[4]))
        result->runtime_calls++;
    else if (!strncmp(name, "cu", 2) && isupper((unsigned char)name[2]))
        result->driver_calls++;
}

static void read_symbols(struct ms_elf_program *result, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t i, count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
    GElf_Sym symbol;

    for (i = 0; data && i < count && gelf_getsym(data, (int)i, &symbol); i++) {
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

        if (symbol.st_shndx == SHN_UNDEF && name)
            count_import(result, name);
    }
}

/* Constant data alone: device code and instructions are large and say nothing. */
static void read_text(struct ms_elf_program *result, Elf_Scn *section, const char *name)
{
    Elf_Data *data =
        strncmp(name, ".rodata", 7) && strncmp(name, ".data", 5) ? NULL : elf_rawdata(section, NULL);

    if (!data || !data->d_buf)
        return;
    if (memmem(data->d_buf, data->d_size, "libcuda.so", 10))
        result->names_driver = true;
    if (memmem(data->d_buf, data->d_size, runtime_mark, sizeof(runtime_mark) - 1))
        result->holds_runtime = true;
    if (memmem(data->d_buf, data->d_size, simulated_mark, sizeof(simulated_mark) - 1))
        result->is_simulated = true;
}

static void read_sections(struct ms_elf_program *result, Elf *elf)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(elf, &names) != 0)
        return;
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

        if (!name)
            continue;
        if (header.sh_type == SHT_DYNAMIC)
            read_dynamic(result, elf, section, &header);
        else if (header.sh_type == SHT_DYNSYM)
            read_symbols(result, elf, section, &header);
        else if (header.sh_type == SHT_PROGBITS)
            read_text(result, section, name);
    }
}

static void read_segments(struct ms_elf_program *result, Elf *elf)
{
    size_t i, count, file_bytes;
    const char *file = elf_rawfile(elf, &file_bytes);
    GElf_Phdr segment;

    if (elf_getphdrnum(elf, &count) != 0)
        return;
    for (i = 0; i < count && gelf_getphdr(elf, (int)i, &segment); i++) {
        if (segment.p_type == PT_DYNAMIC)
            result->is_dynamic = true;
        if (segment.p_type == PT_INTERP && file && segment.p_offset < file_bytes &&
            segment.p_filesz <= file_bytes - segment.p_offset)
            result->interpreter = strndup(file + segment.p_offset, segment.p_filesz);
    }
}

static void read_elf(struct ms_elf_program *result, Elf *elf)
{
    GElf_Ehdr header;

    if (!gelf_getehdr(elf, &header))
        return;
    result->kind = MS_ELF_FILE;
    result->machine = header.e_machine;
    result->is_64 = gelf_getclass(elf) == ELFCLASS64;
    read_segments(result, elf);
    read_sections(result, elf);
    result->is_executable = header.e_type == ET_EXEC || result->interpreter;
}

void ms_elf_read(const char *path, struct ms_elf_program *result)
{
    char start[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    Elf *elf;

    *result = (struct ms_elf_program){.kind = MS_ELF_UNREADABLE, .path = strdup(path)};
    if (fd < 0 || pread(fd, start, sizeof(start) - 1, 0) < 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    result->kind = MS_ELF_OTHER;
    if (!memcmp(start, "#!", 2)) {
        read_script(result, start);
    } else if (!memcmp(start, ELFMAG, SELFMAG) && elf_version(EV_CURRENT) != EV_NONE) {
        elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
        if (elf)
            read_elf(result, elf);
        elf_end(elf);
    }
    close(fd);
}

void ms_elf_free(struct ms_elf_program *elf)
{
    size_t i;

    for (i = 0; i < elf->needed_count; i++)
        free(elf->needed[i]);
    free(elf->needed);
    free(elf->path);
    free(elf->interpreter);
    free(elf->argument);
    free(elf->soname);
    free(elf->rpath);
    free(elf->runpath);
}
