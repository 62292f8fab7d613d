/*
 * Parameters of kernels: where each lies among the arguments and how long it is, read from PTX and from
 * cubins, and told to programs. A list belongs to an image's name and is copied by a function of that name.
 * Kernels of images that are not read have none that is known.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/code/code.h"

static bool put(struct sim_params *params, size_t place, size_t offset, size_t bytes)
{
    if (place >= params->count) {
        struct sim_param *grown = realloc(params->list, (place + 1) * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + params->count, 0, (place + 1 - params->count) * sizeof *grown);
        params->list = grown;
        params->count = place + 1;
    }
    params->list[place] = (struct sim_param){offset, bytes};
    return true;
}

bool sim_params_copy(struct sim_params *to, const struct sim_params *from)
{
    *to = (struct sim_params){.known = from->known};
    for (size_t i = from->count; i-- > 0;)
        if (!put(to, i, from->list[i].offset, from->list[i].bytes))
            return false;
    return true;
}

void sim_params_free(struct sim_params *params)
{
    free(params->list);
    *params = (struct sim_params){0};
}

/* --- PTX: ".param .align 8 .b8 name[24]", between parentheses and with commas between (PTX ISA, ".param" and
 * "Kernel Function Parameters") --- */

static const char *skip_blanks(const char *text)
{
    for (;; text++) {
        if (text[0] == '/' && text[1] == '/')
            text += strcspn(text, "\n");
        else if (text[0] == '/' && text[1] == '*')
            text = strstr(text, "*/") ? strstr(text, "*/") + 1 : text + strlen(text);
        if (!isspace((unsigned char)*text))
            return text;
    }
}

/* One declaration up to its comma or the end; what a pointer points to has an alignment too, which says
 * nothing of the parameter. */
static const char *read_one(const char *text, size_t *bytes_p, size_t *align_p)
{
    size_t element = 0, count = 1, align = 0, length;
    bool pointer = false;

    for (text = skip_blanks(text); *text && *text != ',' && *text != ')'; text = skip_blanks(text + length)) {
        length = strcspn(text, " \t\r\n,)[]");
        if (*text == '[') {
            length = 1 + strcspn(text + 1, ",)]");
            count *= strtoul(text + 1, NULL, 0);
        } else if (length == 4 && !strncmp(text, ".ptr", length)) {
            pointer = true;
        } else if (length == 6 && !strncmp(text, ".align", length)) {
            text = skip_blanks(text + length);
            length = strspn(text, "0123456789");
            align = pointer ? align : strtoul(text, NULL, 10);
        } else if (!element && sim_ptx_type_bytes(text, length)) {
            element = sim_ptx_type_bytes(text, length);
        }
        if (*text == ']')
            length = 1;
    }
    *bytes_p = element * count;
    *align_p = align > element ? align : element;
    return text;
}

CUresult sim_params_ptx(const char *text, struct sim_params *params)
{
    size_t end = 0, bytes, align;

    text = skip_blanks(text);
    params->known = true;
    if (*text == '(')
        text = skip_blanks(text + 1);
    else
        return CUDA_SUCCESS;
    for (size_t place = 0; *text && *text != ')'; place++) {
        text = read_one(text, &bytes, &align);
        if (!bytes || (align & (align - 1))) { /* a type that nobody has heard of */
            params->known = false;
            return CUDA_SUCCESS;
        }
        end = (end + align - 1) & ~(align - 1);
        if (!put(params, place, end, bytes))
            return CUDA_ERROR_OUT_OF_MEMORY;
        end += bytes;
        text = skip_blanks(*text == ',' ? text + 1 : text);
    }
    return CUDA_SUCCESS;
}

/* --- cubin: the section .nv.info.NAME holds records of a format, a kind, and a value or the size of what
 * follows --- */

enum { FORMAT_SIZED = 4, KIND_PARAMETER = 0x17, PARAMETER_BYTES = 12, PARAMETERS_MAX = 32764 };

struct parameter_record {
    uint32_t index;
    uint16_t ordinal, offset;
    uint32_t flags; /* the size from bit 18 on */
};

CUresult sim_params_section(const char *data, size_t bytes, struct sim_params *params)
{
    struct parameter_record record;
    uint16_t size;

    params->known = true;
    for (size_t at = 0; at + 4 <= bytes; at += 4 + size) {
        memcpy(&size, data + at + 2, sizeof size);
        if (data[at] != FORMAT_SIZED) {
            size = 0;
            continue;
        }
        if (size > bytes - at - 4)
            break;
        if ((unsigned char)data[at + 1] != KIND_PARAMETER || size != PARAMETER_BYTES)
            continue;
        memcpy(&record, data + at + 4, sizeof record);
        if (record.ordinal < PARAMETERS_MAX &&
            !put(params, record.ordinal, record.offset, record.flags >> 18))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/* --- what programs ask --- */

static CUresult tell(const struct sim_params *params, size_t index, size_t *offset_p, size_t *bytes_p)
{
    if (!params->known)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (index >= params->count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset_p = params->list[index].offset;
    if (bytes_p)
        *bytes_p = params->list[index].bytes;
    return CUDA_SUCCESS;
}

SIM_API(cuFuncGetParamInfo)(CUfunction handle, size_t index, size_t *offset_p, size_t *bytes_p)
{
    SIM_ENTER(cuFuncGetParamInfo);
    struct sim_function *function;
    CUresult status = offset_p ? sim_function_get(handle, NULL, &function) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    status = tell(&function->params, index, offset_p, bytes_p);
    sim_object_put(function);
    return status;
}

SIM_API(cuKernelGetParamInfo)(CUkernel handle, size_t index, size_t *offset_p, size_t *bytes_p)
{
    SIM_ENTER(cuKernelGetParamInfo);
    struct sim_function *kernel = sim_object_get(handle, SIM_KERNEL);

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = offset_p ? tell(&kernel->params, index, offset_p, bytes_p) : CUDA_ERROR_INVALID_VALUE;
    sim_object_put(kernel);
    return status;
}
