/*
 * What a program describes a product by: its kind, operands' layouts, preferences, transforms. Each is a list of
 * attributes, a number and bytes, made and ended here. What an attribute means is of no interest; one that nobody
 * has set is zero. A description in room of the program's own (..._Init) is not simulated.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cublas/cublas.h"

enum { ATTRIBUTES = 48, VALUE_BYTES = 32 };

struct cublasLtObject {
    unsigned count;
    struct attribute {
        int number;
        size_t bytes;
        unsigned char value[VALUE_BYTES];
    } attributes[ATTRIBUTES];
};

static struct attribute *find(const struct cublasLtObject *object, int number)
{
    for (unsigned i = 0; i < object->count; i++)
        if (object->attributes[i].number == number)
            return (struct attribute *)&object->attributes[i];
    return NULL;
}

static cublasStatus_t set(struct cublasLtObject *object, int number, const void *value, size_t bytes)
{
    if (!object || !value || !bytes || bytes > VALUE_BYTES || number < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct attribute *attribute = find(object, number);
    if (attribute && attribute->bytes != bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!attribute) {
        if (object->count == ATTRIBUTES)
            return CUBLAS_STATUS_INTERNAL_ERROR;
        attribute = &object->attributes[object->count++];
        attribute->number = number;
        attribute->bytes = bytes;
    }
    memcpy(attribute->value, value, bytes);
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
    if (attribute)
        memcpy(value, attribute->value, bytes);
    else
        memset(value, 0, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

uint64_t sim_said(const struct cublasLtObject *object, int number)
{
    const struct attribute *attribute = find(object, number);
    uint64_t value = 0;

    if (attribute)
        memcpy(&value, attribute->value, attribute->bytes < sizeof value ? attribute->bytes : sizeof value);
    return value;
}

static cublasStatus_t make(struct cublasLtObject **object_p)
{
    if (!object_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    *object_p = calloc(1, sizeof **object_p);
    return *object_p ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
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

SIM_API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *object_p, int compute, int scale)
{
    SIM_TRY(make(object_p));
    set(*object_p, COMPUTE_TYPE, &compute, sizeof compute);
    return set(*object_p, SCALE_TYPE, &scale, sizeof scale);
}

SIM_API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *object_p, int type, uint64_t rows,
                                                  uint64_t columns, int64_t ld)
{
    int order = 0, count = 1; /* columns one behind the other; one matrix */

    SIM_TRY(make(object_p));
    set(*object_p, LAYOUT_TYPE, &type, sizeof type);
    set(*object_p, LAYOUT_ORDER, &order, sizeof order);
    set(*object_p, LAYOUT_ROWS, &rows, sizeof rows);
    set(*object_p, LAYOUT_COLUMNS, &columns, sizeof columns);
    set(*object_p, LAYOUT_LD, &ld, sizeof ld);
    return set(*object_p, LAYOUT_COUNT, &count, sizeof count);
}

SIM_API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *object_p)
{
    return make(object_p);
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *, int);
SIM_API cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *object_p, int scale)
{
    SIM_TRY(make(object_p));
    return set(*object_p, 0, &scale, sizeof scale);
}

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
