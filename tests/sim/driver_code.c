/*
 * The simulated driver: images in every form, modules, libraries, variables, launches and occupancy.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>

#include "driver.h"

static const char ptx[] = "//\n// generated: .entry no_kernel\n/* .global .b8 no_variable; */\n"
                          ".version 8.0\n.target sm_90\n.address_size 64\n\n"
                          ".file 1 \"a{b.cu\"\n"
                          ".global .align 4 .b8 table[16][4];\n"
                          ".visible .const .align 8 .f64 factor = 0d3FF0000000000000;\n"
                          ".global .align 4 .u32 counts[3] = {1, 2, 3};\n"
                          ".extern .func helper(.param .b32 x);\n"
                          ".visible .entry first(.param .u64 p, .param .u32 n)\n{\n"
                          "\t.reg .b32 %r<3>;\n\tld.global.u32 %r1, [%rd1];\n\t{ .reg .b32 t; }\n\tret;\n}\n"
                          ".entry second()\n.maxntid 128, 1, 1\n{\n\tret;\n}\n";

/* A cubin as far as the simulator reads one: a header, a symbol table and its strings. */
static const struct {
    Elf64_Ehdr header;
    Elf64_Shdr sections[3];
    Elf64_Sym symbols[4];
    char strings[32];
} cubin = {
    .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
               .e_machine = 190,
               .e_shoff = sizeof(Elf64_Ehdr),
               .e_shentsize = sizeof(Elf64_Shdr),
               .e_shnum = 3},
    .sections = {[1] = {.sh_type = SHT_SYMTAB,
                        .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr),
                        .sh_size = 4 * sizeof(Elf64_Sym),
                        .sh_link = 2},
                 [2] = {.sh_type = SHT_STRTAB,
                        .sh_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) + 4 * sizeof(Elf64_Sym),
                        .sh_size = 32}},
    .symbols = {[1] = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1},
                [2] = {.st_name = 8,
                       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                       .st_shndx = 1,
                       .st_size = 200},
                [3] = {.st_name = 14, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) /* not defined here */}},
    .strings = "\0kernel\0field\0other",
};

/* A fat binary with one member. */
struct fat {
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } header;
    struct {
        uint16_t kind, unused;
        uint32_t header_bytes;
        uint64_t bytes;
        uint32_t compressed_bytes, more[11];
    } member;
    char data[1024];
};

struct wrapper {
    uint32_t magic, version;
    const void *data, *file;
};

static void make_fat(struct fat *fat, uint16_t kind, const void *data, size_t bytes,
                     uint32_t compressed_bytes)
{
    memset(fat, 0, sizeof(*fat));
    fat->header.magic = 0xba55ed50;
    fat->header.version = 1;
    fat->header.header_bytes = sizeof(fat->header);
    fat->header.bytes = sizeof(fat->member) + bytes;
    fat->member.kind = kind;
    fat->member.header_bytes = sizeof(fat->member);
    fat->member.bytes = bytes;
    fat->member.compressed_bytes = compressed_bytes;
    if (bytes > sizeof(fat->data))
        bail("the test's image is too large");
    memcpy(fat->data, data, bytes);
}

static void test_ptx(void)
{
    CUdeviceptr address = 0, again = 0;
    CUfunction function = NULL;
    CUmodule module;
    size_t bytes = 0, before, after, total;
    unsigned count = 0;
    double read = 1;

    must(cuMemGetInfo_v2(&before, &total));
    answers(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    answers(cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
    is_int(count, 2, "two kernels, none from a comment");
    answers(cuModuleGetFunction(&function, module, "second"), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "no_kernel"), CUDA_ERROR_NOT_FOUND);
    answers(cuModuleGetGlobal_v2(&address, &bytes, module, "table"), CUDA_SUCCESS);
    is_u64(bytes, 64, "all dimensions count");
    answers(cuModuleGetGlobal_v2(&again, NULL, module, "table"), CUDA_SUCCESS);
    is_u64(again, address, "a variable stays where it is");
    answers(cuModuleGetGlobal_v2(NULL, &bytes, module, "factor"), CUDA_SUCCESS);
    is_u64(bytes, 8, "a constant without dimensions");
    answers(cuModuleGetGlobal_v2(&address, &bytes, module, "counts"), CUDA_SUCCESS);
    is_u64(bytes, 12, "one with an initial value");
    answers(cuModuleGetGlobal_v2(&address, &bytes, module, "no_variable"), CUDA_ERROR_NOT_FOUND);
    answers(cuModuleGetGlobal_v2(&address, &bytes, module, "t"), CUDA_ERROR_NOT_FOUND);
    must(cuModuleGetGlobal_v2(&address, NULL, module, "factor"));
    must(cuMemcpyDtoH_v2(&read, address, 8));
    ok(read == 0, "variables begin as zeros");
    answers(cuModuleUnload(module), CUDA_SUCCESS);
    answers(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    answers(cuMemcpyDtoH_v2(&read, address, 8), CUDA_ERROR_INVALID_VALUE);
    answers(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    must(cuMemGetInfo_v2(&after, &total));
    is_u64(after, before, "the variables' memory came back");
}

static void test_forms(void)
{
    static struct fat fat;
    struct wrapper wrapper = {0x466243b1, 1, &fat, NULL};
    CUfunction function;
    CUmodule module;
    size_t bytes = 0;

    answers(cuModuleLoadData(&module, &cubin), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "other"), CUDA_ERROR_NOT_FOUND);
    answers(cuModuleGetGlobal_v2(NULL, &bytes, module, "field"), CUDA_SUCCESS);
    is_u64(bytes, 200, "a cubin's symbol tells the size");
    must(cuModuleUnload(module));

    make_fat(&fat, 2, &cubin, sizeof(cubin), 0);
    answers(cuModuleLoadFatBinary(&module, &fat), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
    must(cuModuleUnload(module));

    make_fat(&fat, 1, ptx, strlen(ptx), 0); /* no zero at its end */
    answers(cuModuleLoadData(&module, &wrapper), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "second"), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "third"), CUDA_ERROR_NOT_FOUND);
    must(cuModuleUnload(module));

    make_fat(&fat, 2, "unreadable", 10, 10);
    answers(cuModuleLoadData(&module, &wrapper), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "whatever"), CUDA_SUCCESS);
    must(cuModuleUnload(module));

    make_fat(&fat, 2, "unreadable", 10, 10);
    fat.member.bytes = 1 << 20; /* beyond the end */
    answers(cuModuleLoadData(&module, &fat), CUDA_ERROR_INVALID_IMAGE);
    answers(cuModuleLoadData(&module, "\1\2\3\4\5\6\7\10"), CUDA_ERROR_INVALID_IMAGE);
    answers(cuModuleLoadData(&module, "\n\n.entry what()"), CUDA_ERROR_INVALID_PTX);
    answers(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    answers(cuModuleLoadData(NULL, ptx), CUDA_ERROR_INVALID_VALUE);
    answers(cuModuleLoad(&module, "/nowhere/at/all"), CUDA_ERROR_FILE_NOT_FOUND);
}

/* The parameter `index` of a function or kernel is at `offset` with `bytes`. */
static void is_parameter(CUfunction function, size_t index, size_t offset, size_t bytes)
{
    size_t at = 77, has = 77;

    CUresult status = cuFuncGetParamInfo(function, index, &at, &has);
    ok(status == CUDA_SUCCESS && at == offset && has == bytes, "parameter %zu is at %zu with %zu bytes",
       index, offset, bytes);
    if (status != CUDA_SUCCESS || at != offset || has != bytes)
        diag("%d: at %zu, %zu bytes", (int)status, at, has);
}

static void test_parameters_of_ptx(void)
{
    static const char image[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry many(\n\t.param .u8 a, // one, (two)\n\t.param .align 8 .b8 s[24],\n"
        "\t.param .u64 .ptr .global .align 16 p,\n\t.param .u16 h,\n\t.param .align 4 .b8 v[12],\n"
        "\t.param .align 16 .b8 q[16]\n)\n{\n\tret;\n}\n"
        ".entry none\n{\n\tret;\n}\n.entry odd(.param .texref t)\n{\n\tret;\n}\n";
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUmodule module;
    size_t offset = 77, bytes = 77;

    must(cuModuleLoadData(&module, image));
    must(cuModuleGetFunction(&function, module, "many"));
    is_parameter(function, 0, 0, 1);
    is_parameter(function, 1, 8, 24);
    is_parameter(function, 2, 32, 8);
    is_parameter(function, 3, 40, 2);
    is_parameter(function, 4, 44, 12);
    is_parameter(function, 5, 64, 16);
    answers(cuFuncGetParamInfo(function, 6, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
    answers(cuFuncGetParamInfo(function, 0, NULL, &bytes), CUDA_ERROR_INVALID_VALUE);
    answers(cuFuncGetParamInfo(function, 3, &offset, NULL), CUDA_SUCCESS);
    is_u64(offset, 40, "its size need not be asked for");
    must(cuModuleGetFunction(&function, module, "none"));
    answers(cuFuncGetParamInfo(function, 0, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
    must(cuModuleGetFunction(&function, module, "odd"));
    answers(cuFuncGetParamInfo(function, 0, &offset, &bytes), CUDA_ERROR_NOT_SUPPORTED);
    must(cuModuleUnload(module));
    must(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    must(cuLibraryGetKernel(&kernel, library, "many"));
    answers(cuKernelGetParamInfo(kernel, 4, &offset, &bytes), CUDA_SUCCESS);
    is_u64(offset, 44, "a kernel's parameter has its place");
    answers(cuKernelGetParamInfo(kernel, 6, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
    must(cuLibraryUnload(library));
    answers(cuKernelGetParamInfo(kernel, 4, &offset, &bytes), CUDA_ERROR_INVALID_HANDLE);
}

/* A cubin whose kernel has three parameters, described in the words that the compiler writes. */
static const struct {
    Elf64_Ehdr header;
    Elf64_Shdr sections[4];
    Elf64_Sym symbols[2];
    char strings[32];
    uint32_t info[16];
} described = {
    .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
               .e_machine = 190,
               .e_shoff = sizeof(Elf64_Ehdr),
               .e_shentsize = sizeof(Elf64_Shdr),
               .e_shnum = 4,
               .e_shstrndx = 2},
    .sections = {[1] = {.sh_type = SHT_SYMTAB,
                        .sh_offset = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Shdr),
                        .sh_size = 2 * sizeof(Elf64_Sym),
                        .sh_link = 2},
                 [2] = {.sh_type = SHT_STRTAB,
                        .sh_offset = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Shdr) + 2 * sizeof(Elf64_Sym),
                        .sh_size = 32},
                 [3] = {.sh_name = 8,
                        .sh_type = SHT_LOPROC,
                        .sh_offset = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Shdr) + 2 * sizeof(Elf64_Sym) + 32,
                        .sh_size = 64}},
    .symbols = {[1] = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1}},
    .strings = "\0kernel\0.nv.info.kernel",
    .info = {0x00043704, 0x82, 0x000c1704, 0, 0x00400002, 0x0041f000, 0x00005003, 0x000c1704, 0, 0x00080001,
             0x0061f000, 0x000c1704, 0, 0x00000000, 0x0005f000},
};

static void test_parameters_of_a_cubin(void)
{
    CUfunction function;
    CUmodule module;
    size_t offset, bytes;

    must(cuModuleLoadData(&module, &described));
    must(cuModuleGetFunction(&function, module, "kernel"));
    is_parameter(function, 0, 0, 1);
    is_parameter(function, 1, 8, 24);
    is_parameter(function, 2, 64, 16);
    answers(cuFuncGetParamInfo(function, 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
    must(cuModuleUnload(module));
    must(cuModuleLoadData(&module, &cubin)); /* which says nothing of its kernel */
    must(cuModuleGetFunction(&function, module, "kernel"));
    answers(cuFuncGetParamInfo(function, 0, &offset, &bytes), CUDA_ERROR_NOT_SUPPORTED);
    must(cuModuleUnload(module));
}

static void test_file(void)
{
    char path[4096];
    CUfunction function;
    CUmodule module;
    FILE *file;

    snprintf(path, sizeof(path), "%s/code.ptx", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
    file = fopen(path, "w");
    if (!file || fputs(ptx, file) < 0 || fclose(file) != 0)
        bail("cannot write %s", path);
    answers(cuModuleLoad(&module, path), CUDA_SUCCESS);
    answers(cuModuleGetFunction(&function, module, "first"), CUDA_SUCCESS);
    must(cuModuleUnload(module));
    unlink(path);
}

static void test_library(CUcontext ctx)
{
    CUdeviceptr here = 0, there = 0;
    CUkernel kernel, kernels[4] = {NULL};
    CUfunction function, other_function;
    const char *name = NULL;
    CUlibrary library, back;
    CUmodule module;
    unsigned count = 0;
    CUcontext other;
    size_t bytes;

    answers(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
    answers(cuLibraryGetKernel(&kernel, library, "first"), CUDA_SUCCESS);
    answers(cuLibraryGetKernel(&kernel, library, "third"), CUDA_ERROR_NOT_FOUND);
    answers(cuLibraryGetKernelCount(&count, library), CUDA_SUCCESS);
    is_int(count, 2, "two kernels");
    answers(cuLibraryEnumerateKernels(kernels, 4, library), CUDA_SUCCESS);
    ok(kernels[0] && kernels[1] && !kernels[2], "both are told");
    answers(cuKernelGetName(&name, kernel), CUDA_SUCCESS);
    is_str(name, "first", "a kernel's name");
    answers(cuKernelGetLibrary(&back, kernel), CUDA_SUCCESS);
    is_ptr(back, library, "a kernel's library");
    answers(cuKernelGetFunction(&function, kernel), CUDA_SUCCESS);
    answers(cuFuncGetModule(&module, function), CUDA_SUCCESS);
    answers(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    answers(cuLaunchKernel((CUfunction)kernel, 2, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
    answers(cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
    answers(cuLibraryGetGlobal(&here, &bytes, library, "table"), CUDA_SUCCESS);

    must(cuCtxCreate_v2(&other, 0, 0));
    answers(cuLibraryGetGlobal(&there, &bytes, library, "table"), CUDA_SUCCESS);
    ok(here != there, "a variable has an address in each context");
    answers(cuKernelGetFunction(&other_function, kernel), CUDA_SUCCESS);
    ok(function != other_function, "and a function");
    answers(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    answers(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
    must(cuCtxDestroy_v2(other));
    must(cuCtxSetCurrent(ctx));
    answers(cuLibraryUnload(library), CUDA_SUCCESS);
    answers(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
    answers(cuKernelGetName(&name, kernel), CUDA_ERROR_INVALID_HANDLE);
}

static void test_launch(void)
{
    void *parameters[1] = {NULL};
    CUfunction function;
    CUmodule module;
    int value = 0, grid = 0, threads = 0;
    size_t bytes = 0;

    must(cuModuleLoadData(&module, ptx));
    must(cuModuleGetFunction(&function, module, "first"));
    answers(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    answers(cuLaunchKernel(function, 1, 1, 1, 64, 64, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    answers(cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    answers(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, parameters),
            CUDA_ERROR_INVALID_VALUE);
    answers(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 65536, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    answers(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
            CUDA_ERROR_INVALID_VALUE);
    answers(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536),
            CUDA_SUCCESS);
    answers(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function),
            CUDA_SUCCESS);
    is_int(value, 65536, "the limit is what was set");
    answers(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 65536, NULL, NULL, NULL), CUDA_SUCCESS);
    answers(cuLaunchKernel((CUfunction)&value, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
            CUDA_ERROR_INVALID_HANDLE);
    answers(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 1024, 0), CUDA_SUCCESS);
    is_int(value, 2, "two full blocks to a multiprocessor");
    answers(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 32, 65536), CUDA_SUCCESS);
    is_int(value, 3, "fewer where shared memory runs out");
    answers(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 2000, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuOccupancyMaxPotentialBlockSize(&grid, &threads, function, NULL, 0, 0), CUDA_SUCCESS);
    ok(threads == 1024 && grid > 0, "a block size to begin with");
    answers(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 4, 128), CUDA_SUCCESS);
    ok(bytes > 0 && bytes <= 65536, "what is left for four blocks");
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuModuleUnload(module));
}

/* A kernel waits for its turn and takes its time. */
static void test_order(void)
{
    atomic_int flag = 0;
    CUfunction function;
    CUmodule module;
    CUstream stream;
    double start;

    must(cuModuleLoadData(&module, ptx));
    must(cuModuleGetFunction(&function, module, "first"));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuLaunchHostFunc(stream, hold, &flag));
    must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    answers(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    start = now_ms();
    atomic_store(&flag, 1);
    answers(cuStreamSynchronize(stream), CUDA_SUCCESS);
    ok(now_ms() - start >= 29, "a kernel takes the time that MEMSIM_COST gives it");
    must(cuStreamDestroy_v2(stream));
    must(cuModuleUnload(module));
}

int main(void)
{
    CUcontext ctx;

    setenv("MEMSIM_COST", "kernel=30000000", 1);
    plan(0);
    ctx = begin();
    test_ptx();
    test_forms();
    test_parameters_of_ptx();
    test_parameters_of_a_cubin();
    test_file();
    test_library(ctx);
    test_launch();
    test_order();
    return done();
}
