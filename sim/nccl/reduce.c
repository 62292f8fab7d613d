/*
 * Elements: how large they are, and what a reduction makes of two. In the elements' own type; halves are
 * widened to float for each step, as the vendor's sums do between ranks. Ranks are folded in order, so every
 * rank has the same result.
 */
#include <string.h>

#include "sim/nccl/nccl.h"

size_t sim_type_bytes(ncclDataType_t type)
{
    static const unsigned char bytes[ncclNumTypes] = {
        [ncclInt8] = 1,    [ncclUint8] = 1,    [ncclInt32] = 4,      [ncclUint32] = 4,
        [ncclInt64] = 8,   [ncclUint64] = 8,   [ncclFloat16] = 2,    [ncclFloat32] = 4,
        [ncclFloat64] = 8, [ncclBfloat16] = 2, [ncclFloat8e4m3] = 1, [ncclFloat8e5m2] = 1,
    };

    return (unsigned)type < ncclNumTypes ? bytes[type] : 0;
}

bool sim_type_reduces(ncclDataType_t type)
{
    return sim_type_bytes(type) && type != ncclFloat8e4m3 && type != ncclFloat8e5m2;
}

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float from_bfloat16(uint16_t half)
{
    return float_of_bits((uint32_t)half << 16);
}

/* To the nearest, ties to even; a NaN stays one. */
static uint16_t to_bfloat16(float value)
{
    uint32_t bits = bits_of_float(value);

    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_float16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;

    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    return (sign ? -1.0f : 1.0f) * (float)fraction / 16777216.0f; /* a subnormal counts in steps of 2^-24 */
}

static uint16_t to_float16(float value)
{
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) {
        /* subnormal: adding 0.5 leaves the steps of 2^-24 in the lowest bits, rounded */
        uint32_t steps = bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000;
        return (uint16_t)(sign | steps);
    }
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

#define FOLD(type_, wide, get, put)                                                                          \
    do {                                                                                                     \
        type_ *t = to;                                                                                       \
        const type_ *f = from;                                                                               \
        for (uint64_t i = 0; i < count; i++) {                                                               \
            wide a = get(t[i]), b = get(f[i]);                                                               \
            t[i] = (type_)put(op == ncclProd  ? (wide)(a * b)                                                \
                              : op == ncclMax ? (a > b ? a : b)                                              \
                              : op == ncclMin ? (a < b ? a : b)                                              \
                                              : (wide)(a + b));                                              \
        }                                                                                                    \
    } while (0)
#define AS_IS(x) (x)

/* Whole numbers are folded without a sign where that makes no difference but to what overflows. */
void sim_reduce(void *to, const void *from, uint64_t count, ncclDataType_t type, ncclRedOp_t op)
{
    bool orders = op == ncclMax || op == ncclMin;

    switch (type) {
    case ncclInt8:
        FOLD(int8_t, int, AS_IS, AS_IS);
        return;
    case ncclUint8:
        FOLD(uint8_t, unsigned, AS_IS, AS_IS);
        return;
    case ncclInt32:
        if (orders)
            FOLD(int32_t, int32_t, AS_IS, AS_IS);
        else
            FOLD(uint32_t, uint32_t, AS_IS, AS_IS);
        return;
    case ncclUint32:
        FOLD(uint32_t, uint32_t, AS_IS, AS_IS);
        return;
    case ncclInt64:
        if (orders)
            FOLD(int64_t, int64_t, AS_IS, AS_IS);
        else
            FOLD(uint64_t, uint64_t, AS_IS, AS_IS);
        return;
    case ncclUint64:
        FOLD(uint64_t, uint64_t, AS_IS, AS_IS);
        return;
    case ncclFloat16:
        FOLD(uint16_t, float, from_float16, to_float16);
        return;
    case ncclBfloat16:
        FOLD(uint16_t, float, from_bfloat16, to_bfloat16);
        return;
    case ncclFloat32:
        FOLD(float, float, AS_IS, AS_IS);
        return;
    case ncclFloat64:
        FOLD(double, double, AS_IS, AS_IS);
        return;
    default:
        return;
    }
}

#define DIVIDE(type_, wide, get, put)                                                                        \
    do {                                                                                                     \
        type_ *t = to;                                                                                       \
        for (uint64_t i = 0; i < count; i++)                                                                 \
            t[i] = (type_)put((wide)(get(t[i]) / (wide)ranks));                                              \
    } while (0)

void sim_reduce_finish(void *to, uint64_t count, ncclDataType_t type, ncclRedOp_t op, int ranks)
{
    if (op != ncclAvg)
        return;
    switch (type) {
    case ncclInt8:
        DIVIDE(int8_t, int, AS_IS, AS_IS);
        return;
    case ncclUint8:
        DIVIDE(uint8_t, unsigned, AS_IS, AS_IS);
        return;
    case ncclInt32:
        DIVIDE(int32_t, int32_t, AS_IS, AS_IS);
        return;
    case ncclUint32:
        DIVIDE(uint32_t, uint32_t, AS_IS, AS_IS);
        return;
    case ncclInt64:
        DIVIDE(int64_t, int64_t, AS_IS, AS_IS);
        return;
    case ncclUint64:
        DIVIDE(uint64_t, uint64_t, AS_IS, AS_IS);
        return;
    case ncclFloat16:
        DIVIDE(uint16_t, float, from_float16, to_float16);
        return;
    case ncclBfloat16:
        DIVIDE(uint16_t, float, from_bfloat16, to_bfloat16);
        return;
    case ncclFloat32:
        DIVIDE(float, float, AS_IS, AS_IS);
        return;
    case ncclFloat64:
        DIVIDE(double, double, AS_IS, AS_IS);
        return;
    default:
        return;
    }
}
