/*
 * The names in an image: kernels with their parameters and device variables, read from PTX, from a cubin
 * (ELF), or from the fat binary that holds either. Compressed parts are not read; an image with such a part
 * is taken to have any name it is asked for. No state.
 */
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/code/code.h"

#define WRAPPER_MAGIC 0x466243b1U
#define FATBIN_MAGIC  0xba55ed50U
#define MACHINE_CUDA  190
/* The bytes that a variable of an unread image is given: its size is known to the caller alone. */
#define UNREAD_BYTES SIM_MIB

struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *file;
};

struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* after the header */
};

struct member {
    uint16_t kind; /* 1 PTX, 2 cubin */
    uint16_t unused;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes; /* 0: plain */
};

static CUresult add(struct sim_image *image, const char *text, size_t length, bool entry, size_t bytes)
{
    struct sim_name *name = calloc(1, sizeof *name + length + 1);

    if (!name)
        return CUDA_ERROR_OUT_OF_MEMORY;
    name->entry = entry;
    name->bytes = bytes;
    memcpy(name->text, text, length);
    name->next = image->names;
    image->names = name;
    return CUDA_SUCCESS;
}

const struct sim_name *sim_image_find(const struct sim_image *image, const char *name, bool entry)
{
    static const struct sim_name unread_entry = {.entry = true}, unread_variable = {.bytes = UNREAD_BYTES};

    for (const struct sim_name *known = image->names; known; known = known->next)
        if (known->entry == entry && strcmp(known->text, name) == 0)
            return known;
    if (image->complete)
        return NULL;
    return entry ? &unread_entry : &unread_variable;
}

void sim_image_free(struct sim_image *image)
{
    while (image->names) {
        struct sim_name *next = image->names->next;
        sim_params_free(&image->names->params);
        free(image->names);
        image->names = next;
    }
}

/* --- PTX ------------------------------------------------------------------------------------------------ */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* The next word, brace or bracket of PTX; comments and the rest are passed over. Length 0 at the end. */
static size_t next_token(const char **text_p)
{
    const char *text = *text_p;
    size_t length = 1;

    for (; *text && !in_word(*text) && !strchr("{}[];=", *text); text++) {
        if (text[0] == '/' && text[1] == '/')
            text += strcspn(text, "\n") - 1;
        else if (text[0] == '/' && text[1] == '*')
            text = strstr(text, "*/") ? strstr(text, "*/") + 1 : text + strlen(text) - 1;
        else if (text[0] == '"')
            text += 1 + strcspn(text + 1, "\"\n") - (text[1] == '\0');
    }
    *text_p = text;
    if (!*text)
        return 0;
    while (in_word(*text) && in_word(text[length]))
        length++;
    return length;
}

static bool is_token(const char *token, size_t length, const char *word)
{
    return strlen(word) == length && strncmp(token, word, length) == 0;
}

size_t sim_ptx_type_bytes(const char *token, size_t length)
{
    unsigned bits;

    if (length < 3 || token[0] != '.' || !strchr("bsuf", token[1]))
        return 0;
    bits = (unsigned)strtoul(token + 2, NULL, 10);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

/* After .global or .const: qualifiers, a name, and any number of dimensions. */
static CUresult read_variable(struct sim_image *image, const char **text_p)
{
    const char *name = NULL;
    size_t name_length = 0, bytes = 0, length;
    bool skip = false;

    while ((length = next_token(text_p)) != 0 && !strchr(";=", **text_p)) {
        const char *token = *text_p;
        size_t type = sim_ptx_type_bytes(token, length);

        *text_p += length;
        if (type) {
            bytes = type;
        } else if (is_token(token, length, ".align")) {
            skip = true; /* the number after it */
        } else if (skip) {
            skip = false;
        } else if (!name && *token != '.') {
            name = token;
            name_length = length;
        } else if (name && isdigit((unsigned char)*token)) {
            bytes *= strtoul(token, NULL, 0);
        }
    }
    return name && bytes ? add(image, name, name_length, false, bytes) : CUDA_SUCCESS;
}

static CUresult read_ptx(struct sim_image *image, const char *text)
{
    CUresult status = CUDA_SUCCESS;
    unsigned depth = 0;
    size_t length;

    if (!strstr(text, ".version"))
        return CUDA_ERROR_INVALID_PTX;
    image->bytes = image->bytes ? image->bytes : strlen(text);
    while (status == CUDA_SUCCESS && (length = next_token(&text)) != 0) {
        const char *token = text;

        text += length;
        if (*token == '{') {
            depth++;
        } else if (*token == '}') {
            depth -= depth > 0;
        } else if (depth == 0 && is_token(token, length, ".entry")) {
            length = next_token(&text);
            status = add(image, text, length, true, 0);
            text += length;
            if (status == CUDA_SUCCESS)
                status = sim_params_ptx(text, &image->names->params);
        } else if (depth == 0 && (is_token(token, length, ".global") || is_token(token, length, ".const"))) {
            status = read_variable(image, &text);
        }
    }
    return status;
}

/* --- cubin ---------------------------------------------------------------------------------------------- */

static CUresult read_symbols(struct sim_image *image, const char *data, const Elf64_Shdr *symbols,
                             const Elf64_Shdr *strings)
{
    CUresult status = CUDA_SUCCESS;

    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size && status == CUDA_SUCCESS;
         at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;

        memcpy(&symbol, data + symbols->sh_offset + at, sizeof symbol);
        if (symbol.st_name >= strings->sh_size || symbol.st_shndx == SHN_UNDEF)
            continue;
        const char *name = data + strings->sh_offset + symbol.st_name;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
            status = add(image, name, strlen(name), true, 0);
        else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_size)
            status = add(image, name, strlen(name), false, symbol.st_size);
    }
    return status;
}

/* Reads what the sections .nv.info.NAME say of kernels, once the names are there. */
static CUresult read_infos(struct sim_image *image, const char *data, const Elf64_Ehdr *header)
{
    static const char prefix[] = ".nv.info.";
    CUresult status = CUDA_SUCCESS;
    Elf64_Shdr section, strings;

    if (header->e_shstrndx >= header->e_shnum)
        return CUDA_SUCCESS;
    memcpy(&strings, data + header->e_shoff + header->e_shstrndx * sizeof strings, sizeof strings);
    for (unsigned i = 0; i < header->e_shnum && status == CUDA_SUCCESS; i++) {
        memcpy(&section, data + header->e_shoff + i * sizeof section, sizeof section);
        const char *name =
            section.sh_name < strings.sh_size ? data + strings.sh_offset + section.sh_name : "";
        if (strncmp(name, prefix, sizeof prefix - 1) != 0)
            continue;
        struct sim_name *known = image->names;
        while (known &&
               (!known->entry || known->params.known || strcmp(known->text, name + sizeof prefix - 1)))
            known = known->next;
        if (known)
            status = sim_params_section(data + section.sh_offset, section.sh_size, &known->params);
    }
    return status;
}

static CUresult read_cubin(struct sim_image *image, const char *data)
{
    CUresult status = CUDA_SUCCESS;
    Elf64_Ehdr header;

    memcpy(&header, data, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != MACHINE_CUDA ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return CUDA_ERROR_INVALID_IMAGE;
    if (!image->bytes) /* section headers come last */
        image->bytes = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
    for (unsigned i = 0; i < header.e_shnum && status == CUDA_SUCCESS; i++) {
        Elf64_Shdr section, strings;

        memcpy(&section, data + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_SYMTAB || section.sh_link >= header.e_shnum)
            continue;
        memcpy(&strings, data + header.e_shoff + section.sh_link * sizeof strings, sizeof strings);
        status = read_symbols(image, data, &section, &strings);
    }
    return status == CUDA_SUCCESS ? read_infos(image, data, &header) : status;
}

/* --- fat binary ----------------------------------------------------------------------------------------- */

static CUresult read_member(struct sim_image *image, const struct member *member, const char *data)
{
    char *text;
    CUresult status;

    if (member->compressed_bytes || (member->kind != 1 && member->kind != 2)) {
        image->complete = false;
        return CUDA_SUCCESS;
    }
    if (member->kind == 2)
        return member->bytes >= sizeof(Elf64_Ehdr) ? read_cubin(image, data) : CUDA_ERROR_INVALID_IMAGE;
    text = strndup(data, member->bytes); /* it need not end with a zero */
    status = text ? read_ptx(image, text) : CUDA_ERROR_OUT_OF_MEMORY;
    free(text);
    return status;
}

static CUresult read_fatbin(struct sim_image *image, const char *data)
{
    CUresult status = CUDA_SUCCESS;
    struct member member;
    struct fatbin fatbin;
    const char *end;

    memcpy(&fatbin, data, sizeof fatbin);
    if (fatbin.magic != FATBIN_MAGIC || fatbin.header_bytes < sizeof fatbin)
        return CUDA_ERROR_INVALID_IMAGE;
    image->bytes = fatbin.header_bytes + fatbin.bytes;
    data += fatbin.header_bytes;
    end = data + fatbin.bytes;
    while (status == CUDA_SUCCESS && (size_t)(end - data) >= sizeof member) {
        memcpy(&member, data, sizeof member);
        if (member.header_bytes < sizeof member || member.header_bytes > (size_t)(end - data) ||
            member.bytes > (size_t)(end - data) - member.header_bytes)
            return CUDA_ERROR_INVALID_IMAGE;
        status = read_member(image, &member, data + member.header_bytes);
        data += member.header_bytes + member.bytes;
    }
    return status;
}

/** Reads an image in any of its forms. The image is to be freed even after a failure. */
CUresult sim_image_read(const void *data, struct sim_image *image)
{
    const char *text = data;
    struct wrapper wrapper;
    uint32_t magic;

    image->names = NULL;
    image->complete = true;
    image->bytes = 0;
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    if (isspace((unsigned char)*text) || *text == '.' || *text == '/')
        return read_ptx(image, text);
    memcpy(&magic, data, sizeof magic);
    if (memcmp(&magic, ELFMAG, SELFMAG) == 0)
        return read_cubin(image, data);
    if (magic == FATBIN_MAGIC)
        return read_fatbin(image, data);
    if (magic != WRAPPER_MAGIC)
        return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&wrapper, data, sizeof wrapper);
    return wrapper.data ? sim_image_read(wrapper.data, image) : CUDA_ERROR_INVALID_IMAGE;
}

/** A whole file with zeros after it, for sim_image_read. The caller frees it. */
CUresult sim_image_file(const char *path, char **data_p)
{
    FILE *file = path ? fopen(path, "rbe") : NULL;
    long bytes = -1;
    char *data;

    if (!file)
        return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    if (fseek(file, 0, SEEK_END) == 0)
        bytes = ftell(file);
    rewind(file);
    data = bytes >= 0 ? calloc(1, (size_t)bytes + 64)
                      : NULL; /* the zeros end PTX, and headers may be read whole */
    bool good = data && fread(data, 1, (size_t)bytes, file) == (size_t)bytes;
    fclose(file);
    if (!good) {
        free(data);
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    *data_p = data;
    return CUDA_SUCCESS;
}
