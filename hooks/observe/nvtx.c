/* nvtx.c - memshim as what NVTX calls an injection: its ranges and marks are phases.
 *
 * Floor 3. NVTX loads the library that NVTX_INJECTION64_PATH names (`memshim run` sets it) and calls it once
 * for each object that has NVTX compiled in, with a function that leads to tables of its own functions'
 * places; what is not filled in there does nothing. Domains and registered strings are handles of ours: where
 * their texts are in the record. */
#include <wchar.h>

#include "hooks/observe/nvtx.h"
#include "vendor/abi/nvtx.h"
#include "hooks/observe/phases.h"

MS_EXPORT int InitializeInjectionNvtx2(ms_nvtx_tables_t tables);
MS_EXPORT int InitializeInjectionNvtx(ms_nvtx_tables_t tables);

enum { ATTRIBUTES_BYTES = sizeof(struct ms_nvtx_attributes) };
_Static_assert(ATTRIBUTES_BYTES == 48 && offsetof(struct ms_nvtx_attributes, text) == 40, "as the vendor's");

static uint32_t nvtx_number_of(const void *handle)
{
    return (uint32_t)(uintptr_t)handle;
}

static void *handle_of(uint32_t text)
{
    return (void *)(uintptr_t)text;
}

/* Writes a character in UTF-8; a number that is none becomes U+FFFD. Returns how many bytes it took. */
static size_t put_character(char *into, uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    if (c < 0x80) {
        into[0] = (char)c;
        return 1;
    }
    size_t bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = bytes; i-- > 1; c >>= 6)
        into[i] = (char)(0x80 | (c & 0x3f));
    into[0] = (char)((0xf0 << (4 - bytes)) | c);
    return bytes;
}

static uint32_t nvtx_wide_text(const wchar_t *text, uint32_t (*keep)(const char *))
{
    char narrow[MS_PHASE_NAME_BYTES + 4];
    size_t bytes = 0;
    for (; text && *text && bytes < MS_PHASE_NAME_BYTES; text++)
        bytes += put_character(narrow + bytes, (uint32_t)*text);
    narrow[bytes] = '\0';
    return keep(narrow);
}

static uint32_t wide_text(const wchar_t *text)
{
    return nvtx_wide_text(text, ms_phase_text);
}

uint32_t ms_nvtx_text(unsigned type, const void *text, uint32_t (*keep)(const char *))
{
    switch (type) {
    case MS_NVTX_TEXT_ASCII:
        return keep(text);
    case MS_NVTX_TEXT_WIDE:
        return nvtx_wide_text(text, keep);
    case MS_NVTX_TEXT_REGISTERED:
        return nvtx_number_of(text);
    default:
        return 0;
    }
}

static uint32_t nvtx_text_of(const struct ms_nvtx_attributes *attributes)
{
    if (!attributes || attributes->size < ATTRIBUTES_BYTES)
        return 0;
    return ms_nvtx_text((unsigned)attributes->text_type, attributes->text, ms_phase_text);
}

/* One function for each of NVTX's: `told` is evaluated within the hook scope, and is the answer; else that is
 * `otherwise`. */
#define TOLD(result, function, params, otherwise, told)                                                      \
    static result function params                                                                            \
    {                                                                                                        \
        result answer = otherwise;                                                                           \
        MS_PHASES_WITHIN answer = told;                                                                      \
        return answer;                                                                                       \
    }
#define MARK(function, params, domain, text)                                                                 \
    static void function params                                                                              \
    {                                                                                                        \
        MS_PHASES_WITHIN ms_phase_mark(MS_PHASE_NVTX, nvtx_number_of(domain), text);                         \
    }
#define START(function, params, domain, text)                                                                \
    TOLD(uint64_t, function, params, 0, ms_phase_begin(MS_PHASE_NVTX, nvtx_number_of(domain), text))
#define PUSH(function, params, domain, text)                                                                 \
    TOLD(int, function, params, -1, ms_phase_push(MS_PHASE_NVTX, nvtx_number_of(domain), text))
#define POP(function, params, domain)                                                                        \
    TOLD(int, function, params, -1, ms_phase_pop(MS_PHASE_NVTX, nvtx_number_of(domain)))
#define TEXT(function, params, text) TOLD(void *, function, params, NULL, handle_of(text))

MARK(mark_ex, (const struct ms_nvtx_attributes *attributes), NULL, nvtx_text_of(attributes))
MARK(mark_a, (const char *text), NULL, ms_phase_text(text))
MARK(mark_w, (const wchar_t *text), NULL, wide_text(text))
MARK(domain_mark_ex, (const void *domain, const struct ms_nvtx_attributes *attributes), domain,
     nvtx_text_of(attributes))
START(start_ex, (const struct ms_nvtx_attributes *attributes), NULL, nvtx_text_of(attributes))
START(start_a, (const char *text), NULL, ms_phase_text(text))
START(start_w, (const wchar_t *text), NULL, wide_text(text))
START(domain_start_ex, (const void *domain, const struct ms_nvtx_attributes *attributes), domain,
      nvtx_text_of(attributes))
PUSH(push_ex, (const struct ms_nvtx_attributes *attributes), NULL, nvtx_text_of(attributes))
PUSH(push_a, (const char *text), NULL, ms_phase_text(text))
PUSH(push_w, (const wchar_t *text), NULL, wide_text(text))
PUSH(domain_push_ex, (const void *domain, const struct ms_nvtx_attributes *attributes), domain,
     nvtx_text_of(attributes))
POP(pop, (void), NULL)
POP(domain_pop, (const void *domain), domain)
TEXT(create_a, (const char *name), ms_phase_text(name))
TEXT(create_w, (const wchar_t *name), wide_text(name))
TEXT(register_a, (__attribute__((unused)) const void *domain, const char *text), ms_phase_text(text))
TEXT(register_w, (__attribute__((unused)) const void *domain, const wchar_t *text), wide_text(text))

static void domain_end(__attribute__((unused)) const void *domain, uint64_t id)
{
    MS_PHASES_WITHIN ms_phase_end(id);
}

static void nvtx_end(uint64_t id)
{
    domain_end(NULL, id);
}

static const struct {
    int module;
    unsigned place;
    ms_nvtx_function_t function;
} rows[] = {
    {MS_NVTX_MODULE_CORE, MS_NVTX_MARK_EX, (ms_nvtx_function_t)mark_ex},
    {MS_NVTX_MODULE_CORE, MS_NVTX_MARK_A, (ms_nvtx_function_t)mark_a},
    {MS_NVTX_MODULE_CORE, MS_NVTX_MARK_W, (ms_nvtx_function_t)mark_w},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_START_EX, (ms_nvtx_function_t)start_ex},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_START_A, (ms_nvtx_function_t)start_a},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_START_W, (ms_nvtx_function_t)start_w},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_END, (ms_nvtx_function_t)nvtx_end},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_PUSH_EX, (ms_nvtx_function_t)push_ex},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_PUSH_A, (ms_nvtx_function_t)push_a},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_PUSH_W, (ms_nvtx_function_t)push_w},
    {MS_NVTX_MODULE_CORE, MS_NVTX_RANGE_POP, (ms_nvtx_function_t)pop},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_MARK_EX, (ms_nvtx_function_t)domain_mark_ex},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_RANGE_START_EX, (ms_nvtx_function_t)domain_start_ex},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_RANGE_END, (ms_nvtx_function_t)domain_end},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_RANGE_PUSH_EX, (ms_nvtx_function_t)domain_push_ex},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_RANGE_POP, (ms_nvtx_function_t)domain_pop},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_REGISTER_STRING_A, (ms_nvtx_function_t)register_a},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_REGISTER_STRING_W, (ms_nvtx_function_t)register_w},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_CREATE_A, (ms_nvtx_function_t)create_a},
    {MS_NVTX_MODULE_CORE2, MS_NVTX_DOMAIN_CREATE_W, (ms_nvtx_function_t)create_w},
};

static void nvtx_fill(const struct ms_nvtx_callbacks *callbacks, int module)
{
    ms_nvtx_function_t **table = NULL;
    unsigned size = 0;
    if (!callbacks->module(module, &table, &size) || !table)
        return;
    for (unsigned i = 0; i < MS_ARRAY_LEN(rows); i++) {
        if (rows[i].module == module && rows[i].place < size && table[rows[i].place])
            *table[rows[i].place] = rows[i].function;
    }
}

int InitializeInjectionNvtx2(ms_nvtx_tables_t tables)
{
    const struct ms_nvtx_callbacks *callbacks = tables ? tables(MS_NVTX_TABLE_CALLBACKS) : NULL;
    if (!callbacks || callbacks->bytes < sizeof *callbacks || !callbacks->module ||
        !ms_phases_is_preloaded() || !ms_init_active())
        return 0;
    nvtx_fill(callbacks, MS_NVTX_MODULE_CORE);
    nvtx_fill(callbacks, MS_NVTX_MODULE_CORE2);
    return 1;
}

/* As InitializeInjectionNvtx2, for libnvToolsExt.so.1. */
int InitializeInjectionNvtx(ms_nvtx_tables_t tables)
{
    return InitializeInjectionNvtx2(tables);
}
