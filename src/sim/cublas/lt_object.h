/*
 * What a program describes a product by: its kind, operands' layouts, preferences, transforms. Each is a list
 * of attributes, a number and bytes, made and ended here. A description in room of the program's own
 * (..._Init) is not simulated.
 */
#ifndef SIM_CUBLAS_LT_OBJECT_H
#define SIM_CUBLAS_LT_OBJECT_H

#include "sim/cublas/cublas.h"

/** The value of an attribute of at most eight bytes that the program has set, else `otherwise`. */
uint64_t sim_object_number(const struct cublasLtObject *object, int attribute, uint64_t otherwise);

#endif
