/* nvtx_texts.c - names phases by each of NVTX's functions, and in each way in which it takes a text; prints
 * how many figures of each name phases.py must find, a line each: NAME COUNT MARKS. `old` as its only
 * argument has memshim called by the name that libnvToolsExt.so.1 calls. */
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "include/memshim.h"
#include "tests/phases/nvtx_object.h"

int cudaMalloc(void **pointer, size_t bytes);

typedef const struct ms_nvtx_attributes *attributes_t;

#define CORE(result, place, ...)  ((result(*)(__VA_ARGS__))nvtx_core[place])
#define CORE2(result, place, ...) ((result(*)(__VA_ARGS__))nvtx_core2[place])

static void end(uint64_t range)
{
    CORE(void, MS_NVTX_RANGE_END, uint64_t)(range);
}

static void pop(void)
{
    CORE(int, MS_NVTX_RANGE_POP, void)();
}

/* Once by every function that takes attributes: three ranges and two marks. */
static void by_attributes(void *domain, attributes_t attributes)
{
    CORE(int, MS_NVTX_RANGE_PUSH_EX, attributes_t)(attributes);
    pop();
    end(CORE(uint64_t, MS_NVTX_RANGE_START_EX, attributes_t)(attributes));
    CORE(void, MS_NVTX_MARK_EX, attributes_t)(attributes);
    CORE2(int, MS_NVTX_DOMAIN_RANGE_PUSH_EX, void *, attributes_t)(NULL, attributes);
    CORE2(int, MS_NVTX_DOMAIN_RANGE_POP, void *)(NULL);
    CORE2(void, MS_NVTX_DOMAIN_MARK_EX, void *, attributes_t)(NULL, attributes);
    /* Of another domain, which has rows of its own. */
    CORE2(void, MS_NVTX_DOMAIN_RANGE_END, void *, uint64_t)
    (domain, CORE2(uint64_t, MS_NVTX_DOMAIN_RANGE_START_EX, void *, attributes_t)(domain, attributes));
}

static void by_text(const char *text, const wchar_t *wide)
{
    CORE(int, MS_NVTX_RANGE_PUSH_A, const char *)(text);
    CORE(int, MS_NVTX_RANGE_PUSH_W, const wchar_t *)(wide);
    pop();
    pop();
    end(CORE(uint64_t, MS_NVTX_RANGE_START_A, const char *)(text));
    end(CORE(uint64_t, MS_NVTX_RANGE_START_W, const wchar_t *)(wide));
    CORE(void, MS_NVTX_MARK_A, const char *)(text);
    CORE(void, MS_NVTX_MARK_W, const wchar_t *)(wide);
}

static void by_wide_texts(void)
{
    wchar_t longer[1000];
    wmemset(longer, L'\u20ac', 999);
    longer[999] = 0;
    by_text("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", L"caf\u00e9 \u20ac \U0001F600");
    puts("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 4 2");
    /* A half of a surrogate pair, and a number beyond Unicode. */
    CORE(void, MS_NVTX_MARK_W, const wchar_t *)((const wchar_t[]){L'x', 0xd83d, 0x110000, 0});
    puts("x\xef\xbf\xbd\xef\xbf\xbd 0 1");
    CORE(void, MS_NVTX_MARK_W, const wchar_t *)(longer);
    for (int i = 0; i < 85; i++)
        fputs("\xe2\x82\xac", stdout);
    puts(" 0 1");
}

static void by_memshim(void)
{
    uint64_t phase = MEMSHIM_PHASE_BEGIN("of memshim.h");
    MEMSHIM_PHASE_MARK("of memshim.h");
    MEMSHIM_PHASE_END(phase);
    puts("of memshim.h 1 1");
}

int main(int argc, char **argv)
{
    struct ms_nvtx_attributes given = {.version = 3, .size = sizeof given, .text_type = MS_NVTX_TEXT_ASCII};
    void *block = NULL;
    if (argc > 1 && !strcmp(argv[1], "old"))
        nvtx_begin_by("InitializeInjectionNvtx");
    if (cudaMalloc(&block, 1) != 0)
        return 1;
    void *domain = CORE2(void *, MS_NVTX_DOMAIN_CREATE_W, const wchar_t *)(L"the domain");
    given.text = "plain";
    by_attributes(domain, &given);
    given.text = L"wide";
    given.text_type = MS_NVTX_TEXT_WIDE;
    by_attributes(domain, &given);
    given.text =
        CORE2(void *, MS_NVTX_DOMAIN_REGISTER_STRING_W, void *, const wchar_t *)(domain, L"registered");
    given.text_type = MS_NVTX_TEXT_REGISTERED;
    by_attributes(domain, &given);
    puts("plain 4 2\nwide 4 2\nregistered 4 2");
    /* No text, one of a kind that nobody has heard of, a structure that ends before it, and none. */
    given.text = "unheard of";
    given.text_type = 77;
    by_attributes(domain, &given);
    given.text_type = MS_NVTX_TEXT_ASCII;
    given.size = 40;
    by_attributes(domain, &given);
    by_attributes(domain, NULL);
    puts(" 12 6");
    by_wide_texts();
    by_memshim();
    return 0;
}
