/*
 * The objects that a program describes a product by: its kind, operands' layouts, preferences, transforms.
 * Each is a list of attributes in the room that it has: made and ended here, or the program's own (..._Init),
 * which is as large as the vendor's header says. What an attribute means is of no interest; one that nobody
 * has set is zero.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cublas/cublas.h"

enum { ROOM = 1024, VALUE_BYTES = 32, ROOM_MOST = 65535 };

/* One behind the other: a number, how long the value is, how much of it is kept, and that; zeros at its end
 * are not. */
struct attribute {
    unsigned char number, bytes, kept, value[];
};

struct cublasLtObject {
    uint16_t room, used;
    unsigned char attributes[];
};

static struct attribute *find(const struct cublasLtObject *object, int number)
{
    for (unsigned at = 0; at < object->used;) {
        struct attribute *attribute = (struct attribute *)(uintptr_t)&object->attributes[at];
        if (attribute->number == number)
            return attribute;
        at += (unsigned)sizeof *attribute + attribute->kept;
    }
    return NULL;
}

static void forget(struct cublasLtObject *object, struct attribute *attribute)
{
    size_t bytes = sizeof *attribute + attribute->kept;
    unsigned char *next = (unsigned char *)attribute + bytes;

    memmove(attribute, next, (size_t)(object->attributes + object->used - next));
    object->used = (uint16_t)(object->used - bytes);
}

static cublasStatus_t set(struct cublasLtObject *object, int number, const void *value, size_t bytes)
{
    size_t kept = bytes;

    if (!object || !value || !bytes || bytes > VALUE_BYTES || number < 0 || number > UINT8_MAX)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct attribute *attribute = find(object, number);
    if (attribute && attribute->bytes != bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    while (kept && !((const unsigned char *)value)[kept - 1])
        kept--;
    size_t left = (size_t)object->room - object->used + (attribute ? sizeof *attribute + attribute->kept : 0);
    if (sizeof *attribute + kept > left)
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (attribute)
        forget(object, attribute);
    attribute = (struct attribute *)&object->attributes[object->used];
    *attribute = (struct attribute){(unsigned char)number, (unsigned char)bytes, (unsigned char)kept};
    memcpy(attribute->value, value, kept);
    object->used = (uint16_t)(object->used + sizeof *attribute + kept);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const struct cublasLtObject *object, int number, void *value, size_t bytes,
                          size_t *written_p)
{
    if (!object || number < 0 || (!bytes && !written_p) || (bytes && !value))
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct attribute *attribute = find(object, number);
    if (written_p)
        *written_p = attribute ? attribute->bytes : bytes;
    if (!bytes)
        return CUBLAS_STATUS_SUCCESS;
    if (attribute && attribute->bytes != bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(value, 0, bytes);
    if (attribute)
        memcpy(value, attribute->value, attribute->kept);
    return CUBLAS_STATUS_SUCCESS;
}

uint64_t sim_said(const struct cublasLtObject *object, int number)
{
    const struct attribute *attribute = find(object, number);
    uint64_t value = 0;

    if (attribute)
        memcpy(&value, attribute->value, attribute->kept < sizeof value ? attribute->kept : sizeof value);
    return value;
}

/* An empty description in room of somebody's. */
static cublasStatus_t begin(struct cublasLtObject *object, size_t bytes)
{
    if (!object || bytes <= sizeof *object)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(object, 0, bytes);
    object->room = (uint16_t)(bytes - sizeof *object < ROOM_MOST ? bytes - sizeof *object : ROOM_MOST);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t make(struct cublasLtObject **object_p)
{
    if (!object_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    *object_p = malloc(ROOM);
    return *object_p ? begin(*object_p, ROOM) : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t end(struct cublasLtObject *object)
{
    free(object);
    return CUBLAS_STATUS_SUCCESS;
}

/* Numbers of attributes: cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
 * cublasLtMatrixTransformDescAttributes_t. */
enum { COMPUTE_TYPE, SCALE_TYPE };
enum { LAYOUT_TYPE, LAYOUT_ORDER, LAYOUT_ROWS, LAYOUT_COLUMNS, LAYOUT_LD, LAYOUT_COUNT };

static cublasStatus_t describe_product(struct cublasLtObject *object, int compute, int scale)
{
    SIM_TRY(set(object, COMPUTE_TYPE, &compute, sizeof compute));
    return set(object, SCALE_TYPE, &scale, sizeof scale);
}

static cublasStatus_t describe_layout(struct cublasLtObject *object, int type, uint64_t rows,
                                      uint64_t columns, int64_t ld)
{
    int order = 0, count = 1; /* columns one behind the other; one matrix */

    SIM_TRY(set(object, LAYOUT_TYPE, &type, sizeof type));
    SIM_TRY(set(object, LAYOUT_ORDER, &order, sizeof order));
    SIM_TRY(set(object, LAYOUT_ROWS, &rows, sizeof rows));
    SIM_TRY(set(object, LAYOUT_COLUMNS, &columns, sizeof columns));
    SIM_TRY(set(object, LAYOUT_LD, &ld, sizeof ld));
    return set(object, LAYOUT_COUNT, &count, sizeof count);
}

/* Each of them in room of its own, and in the program's. */
#define MADE(name, parameters, body)                                                                         \
    SIM_API cublasStatus_t name parameters;                                                                  \
    SIM_API cublasStatus_t name parameters                                                                   \
    {                                                                                                        \
        body;                                                                                                \
    }

MADE(cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t * object_p, int compute, int scale),
     SIM_TRY(make(object_p));
     return describe_product(*object_p, compute, scale))
MADE(cublasLtMatmulDescInit_internal, (cublasLtMatmulDesc_t object, size_t bytes, int compute, int scale),
     SIM_TRY(begin(object, bytes));
     return describe_product(object, compute, scale))
MADE(cublasLtMatrixLayoutCreate,
     (cublasLtMatrixLayout_t * object_p, int type, uint64_t rows, uint64_t columns, int64_t ld),
     SIM_TRY(make(object_p));
     return describe_layout(*object_p, type, rows, columns, ld))
MADE(cublasLtMatrixLayoutInit_internal,
     (cublasLtMatrixLayout_t object, size_t bytes, int type, uint64_t rows, uint64_t columns, int64_t ld),
     SIM_TRY(begin(object, bytes));
     return describe_layout(object, type, rows, columns, ld))
MADE(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * object_p), return make(object_p))
MADE(cublasLtMatmulPreferenceInit_internal, (cublasLtMatmulPreference_t object, size_t bytes),
     return begin(object, bytes))
MADE(cublasLtMatrixTransformDescCreate, (cublasLtMatrixTransformDesc_t * object_p, int scale),
     SIM_TRY(make(object_p));
     return set(*object_p, 0, &scale, sizeof scale))
MADE(cublasLtMatrixTransformDescInit_internal,
     (cublasLtMatrixTransformDesc_t object, size_t bytes, int scale), SIM_TRY(begin(object, bytes));
     return set(object, 0, &scale, sizeof scale))

#define REST(name)                                                                                           \
    cublasStatus_t cublasLt##name##Destroy(struct cublasLtObject *);                                         \
    cublasStatus_t cublasLt##name##SetAttribute(struct cublasLtObject *, int, const void *, size_t);         \
    cublasStatus_t cublasLt##name##GetAttribute(struct cublasLtObject *, int, void *, size_t, size_t *);     \
    SIM_API cublasStatus_t cublasLt##name##Destroy(struct cublasLtObject *object)                            \
    {                                                                                                        \
        return end(object);                                                                                  \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasLt##name##SetAttribute(struct cublasLtObject *object, int number,           \
                                                        const void *value, size_t bytes)                     \
    {                                                                                                        \
        return set(object, number, value, bytes);                                                            \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasLt##name##GetAttribute(struct cublasLtObject *object, int number,           \
                                                        void *value, size_t bytes, size_t *written_p)        \
    {                                                                                                        \
        return get(object, number, value, bytes, written_p);                                                 \
    }

REST(MatmulDesc)
REST(MatrixLayout)
REST(MatmulPreference)
REST(MatrixTransformDesc)
