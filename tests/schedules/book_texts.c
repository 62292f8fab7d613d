/* book_texts.c - what the record says in words: its process, the objects in it, lines, code objects of an
 * interpreter that is not there, and the trace; see book.h. */
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/objects/objects.h"
#include "book_rows.h"
#include "record/file/process.h"
#include "record/file/trace.h"
#include "record/file/trace_format.h"
#include "unwind/python/python.h"
#include "unwind/python/python_codes.h"

enum { NAME_BYTES = 32, TRACE_MOST = 64 << 10 };

/* --- lines ------------------------------------------------------------------------------------------------
 */

void book_diagnostic(unsigned i)
{
    book.diagnostics[i] = book.diagnostics[i] == BOOK_THERE ? BOOK_THERE : BOOK_COMING;
    ms_diagnostic(MS_LOG_DEBUG, "test", "line %u", i);
    book.diagnostics[i] = BOOK_THERE;
}

static bool check_diagnostics(const struct book *view)
{
    unsigned found[BOOK_LINES] = {0};
    const char *line;
    for (unsigned k = 0; (line = ms_diagnostic_line(k)); k++) {
        char mine[NAME_BYTES];
        unsigned i = 0;
        for (; i < BOOK_LINES; i++) {
            snprintf(mine, sizeof mine, "test: line %u", i);
            if (strcmp(line, mine) == 0)
                break;
        }
        if (i == BOOK_LINES)
            return book_wrong("a diagnostic that nobody said: %s", line);
        if (found[i]++)
            return book_wrong("diagnostic %u is there twice", i);
    }
    for (unsigned i = 0; i < BOOK_LINES; i++) {
        if (!book_may_be(view->diagnostics[i], found[i], "diagnostic", i))
            return false;
    }
    return true;
}

/* --- code objects -----------------------------------------------------------------------------------------
 */

/* As an interpreter of 3.12 has a string of ASCII, and bytes: reference count, type, length, hash, state. */
struct string {
    uint64_t head[5];
    char text[NAME_BYTES];
};
struct bytes {
    uint64_t head[4];
    unsigned char bytes[2 * NAME_BYTES];
};
enum {
    COMPACT_ASCII = 1 << 5 | 1 << 6 | 1 << 2,
    TEXT_VERSION = 0x030c00f0,
    TEXT_ASCII = 40,
    TEXT_COMPACT = 56
};

/* Each third has its file's name of another. */
static void name_code(unsigned i, char *file, char *name)
{
    snprintf(file, NAME_BYTES, "/src/file_%u.py", i % 3);
    snprintf(name, NAME_BYTES, "Class.function_%u", i);
}

static unsigned lines_of(unsigned i, unsigned char *lines)
{
    unsigned count = 5 + 3 * i;
    for (unsigned k = 0; k < count; k++)
        lines[k] = (unsigned char)(0x80 + 7 * i + k);
    return count;
}

void book_code(unsigned i)
{
    static const uint64_t type;
    struct ms_python_texts texts;
    struct ms_python_reader reader = {.is_copying = false};
    const struct ms_python_interpreter interpreter = {
        .symbols = {.version = TEXT_VERSION, .str_type = (uintptr_t)&type},
        .layout = {.text_ascii = TEXT_ASCII, .text_compact = TEXT_COMPACT}};
    _Alignas(8) struct string file = {.head = {1, (uintptr_t)&type, 0, 0, COMPACT_ASCII}}, name = file;
    _Alignas(8) struct bytes lines = {.head = {1, (uintptr_t)&type, 0, 0}};
    struct ms_python_print print = {
        .file = (uintptr_t)&file, .name = (uintptr_t)&name, .lines = (uintptr_t)&lines, .first_line = 10 + i};
    name_code(i, file.text, name.text);
    file.head[2] = strlen(file.text);
    name.head[2] = strlen(name.text);
    lines.head[2] = lines_of(i, lines.bytes);
    book.codes[i] = book.codes[i] == BOOK_THERE ? BOOK_THERE : BOOK_COMING;
    if (!ms_python_code_row(&interpreter, &reader, &texts, &print))
        engine_fail("there is no row for code %u", i);
    book.codes[i] = BOOK_THERE;
}

static bool is_code(const struct ms_code *code, unsigned i)
{
    char file[NAME_BYTES], name[NAME_BYTES];
    unsigned char lines[2 * NAME_BYTES];
    const unsigned char *found = ms_code_lines(code);
    name_code(i, file, name);
    return code->first_line == 10 + i && code->version == TEXT_VERSION >> 16 &&
           code->lines_bytes == lines_of(i, lines) && found && memcmp(found, lines, code->lines_bytes) == 0 &&
           strcmp(ms_code_text(code->file), file) == 0 && strcmp(ms_code_text(code->name), name) == 0;
}

static bool check_codes(const struct book *view)
{
    unsigned found[BOOK_CODES] = {0};
    const struct ms_code *code;
    for (uint32_t k = 0; (code = ms_code_at(k)); k++) {
        unsigned i = 0;
        while (i < BOOK_CODES && !is_code(code, i))
            i++;
        if (i == BOOK_CODES)
            return book_wrong("row %u is a code object that was not made", k);
        if (found[i]++)
            return book_wrong("code %u is there twice", i);
    }
    for (unsigned i = 0; i < BOOK_CODES; i++) {
        if (!book_may_be(view->codes[i], found[i], "code", i))
            return false;
    }
    return true;
}

/* --- the process ------------------------------------------------------------------------------------------
 */

static bool is_text(const char *key, const char *value)
{
    const char *found = ms_process_text(key);
    return (found && strcmp(found, value) == 0) || book_wrong("%s is %s, not %s", key, found, value);
}

static bool has_option(const char *value)
{
    const char *found;
    for (uint64_t cursor = 0; (found = ms_process_next_text("option", &cursor));) {
        if (strcmp(found, value) == 0)
            return true;
    }
    return book_wrong("there is no option %s", value);
}

/* What is said before there is a file. */
static bool check_process(void)
{
    char host[256] = "", directory[4096] = "";
    gethostname(host, sizeof host - 1);
    return is_text("exe", ms_object(0) ? ms_object(0)->path : "") && is_text("host", host) &&
           is_text("cwd", getcwd(directory, sizeof directory) ? directory : "") &&
           has_option("DIR=e/ledgers");
}

struct objects {
    uint32_t count;
    bool good;
};

/* The build ID, where the object has one. */
static const unsigned char *build_id_of(const struct dl_phdr_info *info, uint32_t *bytes_p)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const ElfW(Nhdr) *note = (const void *)(info->dlpi_addr + part->p_vaddr); /* NOLINT: as it lies */
        if (part->p_type != PT_NOTE || note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4)
            continue;
        *bytes_p = note->n_descsz;
        return (const unsigned char *)(note + 1) + 4;
    }
    return NULL;
}

static int check_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct objects *objects = arg;
    const struct ms_object *row = ms_object(objects->count++);
    uint32_t id_bytes = 0;
    const unsigned char *id = build_id_of(info, &id_bytes);
    (void)bytes;
    objects->good = row && row->bias == info->dlpi_addr && !row->generation && !atomic_load(&row->gone) &&
                    row->start <= (uintptr_t)info->dlpi_phdr && row->start < row->end &&
                    (!strchr(info->dlpi_name, '/') || strcmp(row->path, info->dlpi_name) == 0) &&
                    (!id || (row->build_id_bytes == id_bytes && memcmp(row->build_id, id, id_bytes) == 0));
    return !objects->good;
}

/* They are as many as when the record began, for nothing was loaded since. */
static bool check_objects(void)
{
    struct objects objects = {0, false};
    if (dl_iterate_phdr(check_object, &objects) != 0 || ms_object_count() != objects.count)
        return book_wrong("object %u is another, or of %u there are %u", objects.count - 1, objects.count,
                          ms_object_count());
    return true;
}

/* --- the trace --------------------------------------------------------------------------------------------
 */

/* A block whose free is refused goes, and comes again. */
static struct range ids_of(bool frees)
{
    struct range sum = book.refused;
    for (unsigned i = 0; i < book.site_count; i++) {
        const struct book_site *site = &book.sites[i];
        if (!ms_kind_is_device(site->like.kind))
            continue;
        sum.least += frees ? site->freed.least + site->died.least : site->count.least;
        sum.most += frees ? site->freed.most + site->died.most : site->count.most;
    }
    return sum;
}

/* The trace as a killed process left it, and the counts that it told so far. */
struct told {
    const unsigned char *at, *end;
    uint64_t comes, goes; /* of both layers */
    uint64_t ids[MS_LAYERS];
    bool is_inner[MS_TRACE_SHAPES], is_there[MS_LAYERS][BOOK_TRACED];
};

static uint64_t number_of(struct told *told)
{
    uint64_t number = 0;
    for (unsigned shift = 0; told->at < told->end; shift += 7) {
        number |= (uint64_t)(*told->at & 127) << shift;
        if (*told->at++ < 128)
            return number;
    }
    told->at = told->end + 1; /* it is cut */
    return 0;
}

/* Each block comes once, and goes at most once after it. */
static bool check_comes(struct told *told)
{
    uint64_t word = number_of(told);
    bool inner = word >> 2 < MS_TRACE_SHAPES && told->is_inner[word >> 2];
    uint64_t id = ++told->ids[inner];
    if ((word & 3) != MS_TRACE_SAME)
        number_of(told);
    if (id >= BOOK_TRACED)
        return book_wrong("block %llu of the trace is one too many", (unsigned long long)id);
    told->comes++;
    return told->is_there[inner][id] = true;
}

static bool check_goes(struct told *told, bool inner)
{
    uint64_t id = told->ids[inner] - number_of(told);
    told->goes++;
    if (!id || id >= BOOK_TRACED || !told->is_there[inner][id])
        return book_wrong("block %llu of the trace goes, which was not there", (unsigned long long)id);
    told->is_there[inner][id] = false;
    return true;
}

static void skip_texts(struct told *told)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bytes = number_of(told);
        told->at = bytes <= (uint64_t)(told->end - told->at) ? told->at + bytes : told->end + 1;
    }
}

static bool check_record(struct told *told)
{
    static const unsigned char numbers[MS_TRACE_R_COUNT] = {
        [MS_TRACE_R_SHAPE] = 3, [MS_TRACE_R_THREAD] = 1, [MS_TRACE_R_STREAM] = 5, [MS_TRACE_R_PHASE] = 2,
        [MS_TRACE_R_BEGIN] = 3, [MS_TRACE_R_FINISH] = 1, [MS_TRACE_R_MARK] = 1};
    unsigned record = *told->at & 15, time = *told->at++ >> 4;
    if (time == MS_TRACE_TIME_MORE)
        number_of(told);
    if (record == MS_TRACE_R_ALLOC)
        return check_comes(told);
    if (record == MS_TRACE_R_FREE || record == MS_TRACE_R_FREE_INNER)
        return check_goes(told, record == MS_TRACE_R_FREE_INNER);
    if (record >= MS_TRACE_R_COUNT || !numbers[record])
        return book_wrong("a record of the trace is none: %u", record);
    uint64_t shape = record == MS_TRACE_R_SHAPE ? number_of(told) : 0;
    for (unsigned i = 0; i < numbers[record]; i++)
        number_of(told);
    if (record == MS_TRACE_R_SHAPE && shape < MS_TRACE_SHAPES)
        told->is_inner[shape] = number_of(told) == MS_KIND_INNER;
    if (record == MS_TRACE_R_PHASE)
        skip_texts(told);
    return true;
}

/* The end of the file is that of the trace, or a byte that says so. */
static bool check_records(const char *text, size_t bytes)
{
    static struct told told;
    struct range born = ids_of(false), gone = ids_of(true);
    memset(&told, 0, sizeof told);
    told.at = (const unsigned char *)text;
    told.end = told.at + bytes;
    while (told.at < told.end && *told.at != MS_TRACE_R_END) {
        if (!check_record(&told))
            return false;
    }
    if (told.at > told.end)
        return book_wrong("the trace ends within a record");
    uint64_t comes = told.comes, goes = told.goes;
    return (comes >= born.least && comes <= born.most && goes >= gone.least && goes <= gone.most) ||
           book_wrong("in the trace %llu come and %llu go, of %llu and %llu", (unsigned long long)comes,
                      (unsigned long long)goes, (unsigned long long)born.most, (unsigned long long)gone.most);
}

bool book_trace_holds(char *why, size_t why_bytes)
{
    static char text[TRACE_MOST];
    char error[200];
    const char *path = ms_process_text("trace");
    book_tell(why, why_bytes);
    if (!path)
        return !atomic_load(&ms_process()->trace_end) || book_wrong("the record has events of no trace");
    if (ms_trace_complete(error, sizeof error) != 0)
        return book_wrong("the trace is not completed: %s", error);
    int fd = open(path, O_RDONLY);
    ssize_t bytes = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (fd >= 0)
        close(fd);
    if (bytes < 0 || bytes == sizeof text - 1)
        return book_wrong("the trace is not to be read");
    const char *first = text;
    for (unsigned line = 0; first && line < 3; line++) {
        first = memchr(first, '\n', (size_t)(text + bytes - first));
        first = first ? first + 1 : NULL;
    }
    return first ? check_records(first, (size_t)(text + bytes - first)) : book_wrong("the trace has no head");
}

bool book_texts_hold(const struct book *view)
{
    return check_diagnostics(view) && check_codes(view) &&
           (!atomic_load(&ms_process()->described) || (check_process() && check_objects()));
}
