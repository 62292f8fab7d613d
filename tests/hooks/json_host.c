/*
 * json_host.c - a program with functions of its own under the names that jansson and json-c export, visible
 * to every library. A report written through one of them would not be one; each ends the program with a
 * status of its own.
 */
#include <stdio.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"

#define OWN(name)                                                                                            \
    __attribute__((visibility("default"))) int name(void);                                                   \
    int name(void)                                                                                           \
    {                                                                                                        \
        static const char text[] = #name " of the host was called\n";                                        \
        if (write(2, text, sizeof(text) - 1) < 0)                                                            \
            _exit(4);                                                                                        \
        _exit(5);                                                                                            \
    }

OWN(json_object)
OWN(json_array)
OWN(json_integer)
OWN(json_string)
OWN(json_string_nocheck)
OWN(json_true)
OWN(json_delete)
OWN(json_object_set_new)
OWN(json_object_set_new_nocheck)
OWN(json_array_append_new)
OWN(json_object_get)
OWN(json_object_iter)
OWN(json_dumps)
OWN(json_dumpf)
OWN(json_dump_file)
OWN(json_dump_callback)
OWN(json_set_alloc_funcs)
OWN(json_set_alloc_funcs2)
OWN(jsonp_malloc)
OWN(jsonp_free)
OWN(hashtable_init)
OWN(hashtable_set)
OWN(strbuffer_init)
OWN(json_object_new_object)

int main(void)
{
    CUdeviceptr p = 0;
    int status = cuMemAlloc_v2(&p, 4096);

    printf("alloc %d\n", status);
    return 0;
}
