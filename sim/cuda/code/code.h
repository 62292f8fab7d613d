/*
 * Code as far as the simulator knows it, between image.c (which names an image has), module.c (modules,
 * libraries and their variables), function.c (functions and kernels) and launch.c. Lists are under the code
 * lock, which comes before the memory lock; handles are objects.
 */
#ifndef MEMSIM_CUDA_CODE_H
#define MEMSIM_CUDA_CODE_H

#include "sim/cuda/sim.h"

struct sim_param {
    size_t offset, bytes;
};

struct sim_params {
    struct sim_param *list; /* owned */
    size_t count;
    bool known; /* false: the image does not say, or is not read */
};

struct sim_name {
    struct sim_name *next;
    bool entry;               /* a kernel, or else a variable */
    size_t bytes;             /* of a variable */
    struct sim_params params; /* of a kernel */
    char text[];
};

struct sim_image {
    struct sim_name *names;
    bool complete; /* false: part of it is compressed, and any name may be in there */
    size_t bytes;  /* of the whole image */
};

CUresult sim_image_read(const void *data, struct sim_image *image);
CUresult sim_image_file(const char *path, char **data_p);
void sim_image_free(struct sim_image *image);
const struct sim_name *sim_image_find(const struct sim_image *image, const char *name, bool entry);
/** The size of a PTX type like .b8 or .f64, 0 if the word is none. */
size_t sim_ptx_type_bytes(const char *token, size_t length);

/* param.c */

/** Reads the parameters that follow an entry's name in PTX. */
CUresult sim_params_ptx(const char *text, struct sim_params *params);
/** Reads those of a kernel from its section of a cubin. */
CUresult sim_params_section(const char *data, size_t bytes, struct sim_params *params);
/** False when memory ran out; *to is to be freed even then. */
bool sim_params_copy(struct sim_params *to, const struct sim_params *from);
void sim_params_free(struct sim_params *params);

/* A function of a module, or a kernel of a library: the same thing with and without a context. */
struct sim_function {
    struct sim_object object;
    struct sim_function *next;
    struct CUmod_st *module;  /* NULL in a kernel */
    struct CUlib_st *library; /* NULL in a function of a plain module */
    int dynamic_bytes, carveout;
    struct sim_params params;
    char name[];
};

struct sim_variable {
    struct sim_variable *next;
    CUdeviceptr address;
    size_t bytes;
    char name[];
};

struct CUmod_st {
    struct sim_object object;
    unsigned long long
        ctx_id;            /* a module dies with its context: nothing is done then, it is no longer found */
    struct CUmod_st *next; /* of its library */
    struct CUlib_st *library; /* NULL if it was loaded by itself */
    struct sim_image own;
    struct sim_function *functions;
    struct sim_variable *variables;
    CUdeviceptr code; /* where its image lies on the device; 0 where modules take nothing */
};

struct CUlib_st {
    struct sim_object object;
    struct sim_image image;
    struct sim_function *kernels;
    struct CUmod_st *modules; /* one per context that asked */
};

/* One of the few kernels that do something (body.c). */
#define SIM_BODY_ARGUMENTS 20

struct sim_body {
    const char *name;
    unsigned count; /* of arguments */
    unsigned char sizes[SIM_BODY_ARGUMENTS];
    CUresult (*run)(const uint64_t *arguments, struct sim_queue *queue);
};

const struct sim_body *sim_body_find(const char *name);
/** True if a kernel of this context may touch the bytes. A peer's plain memory needs the context's own
 * permission; pools and mapped handles have lists of their own. With the memory lock held. */
bool sim_body_reaches(const struct CUctx_st *ctx, CUdeviceptr address, size_t bytes, bool write);
/** The kernel memsim_multiply (multiply.c). */
CUresult sim_body_multiply(const uint64_t *p, struct sim_queue *queue);
bool sim_body_arguments(const struct sim_body *body, void **parameters, void **extra, uint64_t *arguments);

void sim_code_lock(void);
void sim_code_unlock(void);

/** The live function or kernel behind a handle, referenced; functions only in their own context. */
CUresult sim_function_get(CUfunction handle, struct CUctx_st *ctx, struct sim_function **function_p);
/** The function or kernel of this name in a list, made if the image has it. With the code lock held. */
CUresult sim_function_of(struct sim_function **list, const struct sim_image *image, const char *name,
                         enum sim_kind kind, struct sim_function **function_p);
/** Ends all functions of a list. With the code lock held. */
void sim_function_retire(struct sim_function *list);
/** Makes every entry an image names. With the code lock held. Returns how many there are. */
unsigned sim_function_all(struct sim_function **list, const struct sim_image *image, enum sim_kind kind);
/** The address and size of a module's variable, made on first use. With the code lock held. */
CUresult sim_variable_find(struct CUmod_st *module, struct CUctx_st *ctx, const char *name,
                           CUdeviceptr *address_p, size_t *bytes_p);
/** Ends a module whose work is over: its functions, its variables, its handle. With the code lock held. */
void sim_module_end(struct CUmod_st *module);
void sim_module_dispose(void *object);
/** A library's module in a context, made on first use. With the code lock held. */
CUresult sim_library_module(struct CUlib_st *library, struct CUctx_st *ctx, struct CUmod_st **module_p);

#endif
