/* options.c - the MEMSHIM_* variables: defaults, then the file, then the environment.
 *
 * Floor 0. ms_options_load is called once, before any reader; after that everything here is constant. The
 * values live in static storage, whose untouched pages cost nothing. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/libc.h"
#include "base/options/options_value.h"
#include "base/size.h"

enum { FILE_BYTES_MAX = 64 * 1024, COMPLAINT_BYTES = 512, WHY_BYTES = 128, QUOTED_MAX = 96 };

static const char prefix[] = "MEMSHIM_";
enum { PREFIX_LENGTH = sizeof prefix - 1 };

#define ENUM   MS_TYPE_ENUM
#define INT    MS_TYPE_INT
#define SIZE   MS_TYPE_SIZE
#define SHARE  MS_TYPE_SHARE
#define BYTES  MS_TYPE_BYTES
#define PAIR   MS_TYPE_PAIR
#define STRING MS_TYPE_STRING
#define PATH   MS_TYPE_PATH
#define REGEX  MS_TYPE_REGEX
static const struct ms_option_info infos[MS_OPT_COUNT] = {
#define MS_OPTION(id, name, type, fallback, values, effect, text)                                            \
    [MS_OPT_##id] = {name, type, fallback, values, MS_EFFECT_##effect, text},
#include "base/options/options.def"
#undef MS_OPTION
};
#undef ENUM
#undef INT
#undef SIZE
#undef SHARE
#undef BYTES
#undef PAIR
#undef STRING
#undef PATH
#undef REGEX

static struct ms_option_value values[MS_OPT_COUNT];

/* The receiver of complaints, and how many there were. */
struct listener {
    ms_option_complaint_func_t complain;
    void *arg;
    int count;
};

static void MS_PRINTF(2, 3) options_complain(struct listener *listener, const char *format, ...)
{
    char line[COMPLAINT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c; c++) { /* a line stays one, whatever a variable holds */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
    listener->count++;
    if (listener->complain)
        listener->complain(listener->arg, line);
}

static void complain_unknown(struct listener *listener, const char *where, const char *name, size_t length)
{
    enum ms_option_id nearest = ms_option_nearest(name, length);
    int shown = length < QUOTED_MAX ? (int)length : QUOTED_MAX;
    if (nearest != MS_OPT_COUNT)
        options_complain(listener, "%s%.*s: no such variable; did you mean %s%s?", where, shown, name,
                         where == prefix ? prefix : "", infos[nearest].name);
    else
        options_complain(listener, "%s%.*s: no such variable; `memshim env` lists them", where, shown, name);
}

/* `where` precedes the name in a complaint: "MEMSHIM_", or the file and line. */
static void options_set(struct listener *listener, const char *where, enum ms_option_id id, const char *text,
                        enum ms_option_source source)
{
    char why[WHY_BYTES];
    if (!*text) /* set to nothing is not set */
        return;
    if (ms_option_parse(&infos[id], text, &values[id], why, sizeof why))
        values[id].source = source;
    else
        options_complain(listener, "%s%s: \"%.*s\" is not %s; using %s", where, infos[id].name, QUOTED_MAX,
                         text, why, *values[id].text ? values[id].text : "none");
}

static void set_defaults(void)
{
    char why[WHY_BYTES];
    for (unsigned id = 0; id < MS_OPT_COUNT; id++) {
        values[id].text[0] = '\0';
        values[id].number = 0;
        values[id].source = MS_SOURCE_DEFAULT;
        if (*infos[id].default_text)
            ms_option_parse(&infos[id], infos[id].default_text, &values[id], why, sizeof why);
    }
}

/* Cuts spaces at both ends, in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

static void read_line(struct listener *listener, const char *path, int number, char *line)
{
    char where[QUOTED_MAX + 16];
    snprintf(where, sizeof where, "%.*s:%d: ", QUOTED_MAX, path, number);
    line = trim(line);
    if (!*line || *line == '#')
        return;
    char *equals = strchr(line, '=');
    if (!equals) {
        options_complain(listener, "%s\"%.*s\" is not `name = value`", where, QUOTED_MAX, line);
        return;
    }
    *equals = '\0';
    char *name = trim(line), *text = trim(equals + 1);
    enum ms_option_id id = ms_option_by_name(name, strlen(name), true);
    if (id == MS_OPT_COUNT)
        complain_unknown(listener, where, name, strlen(name));
    else if (id == MS_OPT_CONFIG)
        options_complain(listener, "%sCONFIG: a file cannot name another file", where);
    else
        options_set(listener, where, id, text, MS_SOURCE_FILE);
}

/* The whole file in `text`; its length, or -1 with errno set. Not stdio: that allocates. Not a pipe: that
 * waits. */
static ssize_t options_read_file(const char *path, char *text, size_t bytes)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    ssize_t length = -1;
    if (fstat(fd, &status) == 0) {
        if (!S_ISREG(status.st_mode) || status.st_size >= (off_t)bytes)
            errno = S_ISREG(status.st_mode) ? EFBIG : EINVAL;
        else
            length = read(fd, text, bytes - 1);
    }
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return length;
}

static void load_file(struct listener *listener, const char *path)
{
    static char text[FILE_BYTES_MAX];
    ssize_t length = options_read_file(path, text, sizeof text);
    if (length < 0) {
        options_complain(listener, "%sCONFIG: cannot read \"%.*s\": %s", prefix, 2 * QUOTED_MAX, path,
                         ms_error_text(errno));
        return;
    }
    text[length] = '\0';
    int number = 1;
    for (char *line = text, *next; line; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        read_line(listener, path, number, line);
    }
}

static const char *find_config(char *const *environment)
{
    for (; *environment; environment++) {
        if (strncmp(*environment, "MEMSHIM_CONFIG=", 15) == 0)
            return *environment + 15;
    }
    return "";
}

static void load_environment(struct listener *listener, char *const *environment)
{
    for (; *environment; environment++) {
        const char *variable = *environment, *equals = strchr(variable, '=');
        if (strncmp(variable, prefix, PREFIX_LENGTH) != 0 || !equals)
            continue;
        const char *name = variable + PREFIX_LENGTH;
        size_t length = (size_t)(equals - name);
        enum ms_option_id id = ms_option_by_name(name, length, false);
        if (id == MS_OPT_COUNT)
            complain_unknown(listener, prefix, name, length);
        else
            options_set(listener, prefix, id, equals + 1, MS_SOURCE_ENVIRONMENT);
    }
}

int ms_options_load(char *const *environment, ms_option_complaint_func_t complaint_func, void *arg)
{
    struct listener listener = {complaint_func, arg, 0};
    int saved_errno = errno;
    set_defaults();
    if (environment) {
        const char *config = find_config(environment);
        if (*config)
            load_file(&listener, config);
        load_environment(&listener, environment);
    }
    errno = saved_errno;
    return listener.count;
}

void ms_options_check(ms_option_complaint_func_t say, void *arg)
{
    struct listener listener = {say, arg, 0};
    for (unsigned id = 0; id < MS_OPT_COUNT; id++) {
        const char *text = values[id].text;
        bool size = infos[id].type == MS_TYPE_SIZE || infos[id].type == MS_TYPE_SHARE ||
                    infos[id].type == MS_TYPE_BYTES;
        if (size && values[id].source != MS_SOURCE_DEFAULT && ms_size_lacks_unit(text))
            options_complain(&listener, "%s%s: %s is %s bytes; %sM is likely meant", prefix, infos[id].name,
                             text, text, text);
    }
}

const struct ms_option_info *ms_option_info(enum ms_option_id id)
{
    return &infos[id];
}

enum ms_option_source ms_option_source(enum ms_option_id id)
{
    return values[id].source;
}

const char *ms_option_text(enum ms_option_id id)
{
    return values[id].text;
}

int64_t ms_option_int(enum ms_option_id id)
{
    return values[id].number;
}

static uint64_t part_of(uint64_t total_bytes, uint64_t bytes, bool percent)
{
    return percent ? (uint64_t)((__uint128_t)total_bytes * bytes / 100) : bytes;
}

uint64_t ms_option_size(enum ms_option_id id, uint64_t total_bytes)
{
    const struct ms_option_value *value = &values[id];
    return part_of(total_bytes, value->bytes, value->percent);
}

bool ms_option_pair(enum ms_option_id id, uint64_t total_bytes, uint64_t *first_p, uint64_t *second_p)
{
    const struct ms_option_value *value = &values[id];
    *first_p = part_of(total_bytes, value->bytes, value->percent);
    *second_p = part_of(total_bytes, value->most_bytes, value->most_percent);
    return *value->text != '\0';
}

bool ms_option_is_percent(enum ms_option_id id)
{
    return values[id].percent || values[id].most_percent;
}
