/* test_options.c - every type of option, good and bad, from the environment and from a file. */
#include "config.h"

#include <unistd.h>

#include "base/options/options.h"
#include "tests/tap.h"

static char complaints[16][512];
static int complaint_count;

static void note_complaint(void *arg, const char *line)
{
    (void)arg;
    if (complaint_count < 16)
        snprintf(complaints[complaint_count], sizeof complaints[0], "%s", line);
    complaint_count++;
}

static int load(const char *first, const char *second)
{
    const char *environment[] = {"HOME=/", first, second, NULL};
    complaint_count = 0;
    memset(complaints, 0, sizeof complaints);
    return ms_options_load((char *const *)environment, note_complaint, NULL);
}

static void test_defaults(void)
{
    is_int(ms_options_load(NULL, note_complaint, NULL), 0, "defaults bring no complaint");
    int wrong = 0;
    for (unsigned id = 0; id < MS_OPT_COUNT; id++)
        wrong += strcmp(ms_option_text(id), ms_option_info(id)->default_text) != 0 ||
                 ms_option_source(id) != MS_SOURCE_DEFAULT;
    is_int(wrong, 0, "every option has the value its row says, and every default is allowed");
    is_int(ms_option_int(MS_OPT_MODE), MS_MODE_POOL, "an enumerated default is its index");
    is_u64(ms_option_size(MS_OPT_SINGLE_MIN, 0), 16 << 20, "a size's default is in bytes");
    ok(ms_option_size(MS_OPT_LIMIT, 0) == UINT64_MAX, "none is no bound");
}

static void test_good_values(void)
{
    is_int(load("MEMSHIM_MODE=track", "MEMSHIM_STACK_DEPTH=256"), 0, "good values bring no complaint");
    is_int(ms_option_int(MS_OPT_MODE), MS_MODE_TRACK, "an enumerated value");
    is_int(ms_option_int(MS_OPT_STACK_DEPTH), 256, "a number at its upper bound");
    is_int(ms_option_source(MS_OPT_MODE), MS_SOURCE_ENVIRONMENT, "its source");
    load("MEMSHIM_LIMIT=80%", "MEMSHIM_KEEP=3t");
    is_u64(ms_option_size(MS_OPT_LIMIT, 1000), 800, "a percentage is of the device");
    ok(ms_option_is_percent(MS_OPT_LIMBO) && ms_option_size(MS_OPT_LIMBO, 1000) == 60,
       "or of what is live, as by default of limbo");
    ok(ms_option_size(MS_OPT_LIMIT, UINT64_MAX) > UINT64_MAX / 2, "a percentage of much does not overflow");
    is_u64(ms_option_size(MS_OPT_KEEP, 0), UINT64_C(3) << 40, "a unit in lower case");
    is_int(load("MEMSHIM_TRACE_MAX=1M", NULL), 0, "a size that is the least that is allowed");
    is_u64(ms_option_size(MS_OPT_TRACE_MAX, 0), 1 << 20, "is taken");
    load("MEMSHIM_REPORT=", "MEMSHIM_INCLUDE=^/usr/(bin|lib)/x.*$");
    is_str(ms_option_text(MS_OPT_REPORT), "memshim.%h%R.%p.json", "set to nothing is not set");
    is_str(ms_option_text(MS_OPT_INCLUDE), "^/usr/(bin|lib)/x.*$", "an expression");
}

/* The value must bring one complaint that holds `words`, and leave the default. */
static void bad(const char *variable, enum ms_option_id id, const char *words)
{
    int count = load(variable, NULL);
    ok(count == 1 && strstr(complaints[0], words) &&
           strcmp(ms_option_text(id), ms_option_info(id)->default_text) == 0,
       "%s: \"%s\"", variable, complaints[0]);
}

static void test_sizes(void)
{
    static const struct {
        const char *variable;
        uint64_t bytes;
    } sizes[] = {
        {"MEMSHIM_KEEP=0", 0},
        {"MEMSHIM_KEEP=512", 512},
        {"MEMSHIM_KEEP=1.5G", UINT64_C(3) << 29},
        {"MEMSHIM_KEEP=1GB", UINT64_C(1) << 30},
        {"MEMSHIM_KEEP=1GiB", UINT64_C(1) << 30},
        {"MEMSHIM_KEEP=2kib", 2048},
        {"MEMSHIM_KEEP=0.5K", 512},
        {"MEMSHIM_KEEP=0.3k", 307},
        {"MEMSHIM_KEEP=1.00000000000000000001T", UINT64_C(1) << 40},
        {"MEMSHIM_KEEP=18446744073709551615", UINT64_MAX},
        {"MEMSHIM_KEEP=16777215.99999999999T", (UINT64_C(1) << 40) * 16777216 - 11},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        load(sizes[i].variable, NULL);
        is_int(complaint_count, 0, "%s is a size", sizes[i].variable);
        is_u64(ms_option_size(MS_OPT_KEEP, 0), sizes[i].bytes, "and the right one");
    }
}

static void test_bad_values(void)
{
    bad("MEMSHIM_MODE=fast", MS_OPT_MODE, "MEMSHIM_MODE: \"fast\" is not one of pool,track,off; using pool");
    bad("MEMSHIM_MODE=poo", MS_OPT_MODE, "is not one of");
    bad("MEMSHIM_MODE=pool|track", MS_OPT_MODE, "is not one of");
    bad("MEMSHIM_STACK_DEPTH=0", MS_OPT_STACK_DEPTH, "is not a number in 1-256; using 64");
    bad("MEMSHIM_STACK_DEPTH=257", MS_OPT_STACK_DEPTH, "1-256");
    bad("MEMSHIM_STACK_DEPTH=-1", MS_OPT_STACK_DEPTH, "1-256");
    bad("MEMSHIM_STACK_DEPTH=12x", MS_OPT_STACK_DEPTH, "1-256");
    bad("MEMSHIM_STACK_DEPTH=99999999999999999999999", MS_OPT_STACK_DEPTH, "1-256");
    bad("MEMSHIM_LIMIT=101%", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_LIMIT=5X", MS_OPT_LIMIT, "or the word none");
    bad("MEMSHIM_LIMBO=6.5%", MS_OPT_LIMBO, "or % of live memory, or the word none");
    bad("MEMSHIM_LIMBO=all", MS_OPT_LIMBO, "is not a size");
    bad("MEMSHIM_LIMIT=1.5", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_LIMIT=5KiBs", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_LIMIT=.5G", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_LIMIT=1GBB", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_LIMIT=18446744073709551616", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_limit=1G", MS_OPT_LIMIT, "no such variable");
    bad("MEMSHIM_LIMIT=99999999T", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_LIMIT=K", MS_OPT_LIMIT, "is not a size");
    bad("MEMSHIM_PREALLOC=none", MS_OPT_PREALLOC, "is not a size");
    bad("MEMSHIM_TRACE_MAX=0", MS_OPT_TRACE_MAX, "1M at least, or the word none; using none");
    bad("MEMSHIM_TRACE_MAX=1048575", MS_OPT_TRACE_MAX, "is not a size");
    bad("MEMSHIM_TRACE_MAX=50%", MS_OPT_TRACE_MAX, "is not a size");
    bad("MEMSHIM_EXCLUDE=(", MS_OPT_EXCLUDE, "is not an extended regular expression");
    bad("MEMSHIM_EXCLUDE=a{99}{99}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=a{99}*?{99}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=a????????????????{255}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=((a{1,20}b){20}){,20}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=a+++++++++++++", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=a{9999999999999999999999}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=x??????*??{1,99}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=((a?b?)*c?)?{1,20}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=(((x?|y|)+)?){1,20}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=(((x{0,1}){1,}){,1}){1,20}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=^^x?????{0,255}", MS_OPT_EXCLUDE, "too large");
    bad("MEMSHIM_EXCLUDE=(a|\\<)(x?y?){1,99}", MS_OPT_EXCLUDE, "too large");
}

/* Repetitions beside each other do not multiply, and in a bracket nothing repeats. */
static void test_regexes(void)
{
    static const char *const expressions[] = {"/a+b+c+d+e+f+g+h+i+j+k+l+m+n+",
                                              "(/[^/]+){1,9}",
                                              "[+{99}{99}+++++++++++++(]",
                                              "[]({99]{9}",
                                              "[[:alpha:]+({999]{9}",
                                              "\\({9}\\+++",
                                              "^(/usr)?/bin/(python3?|bash)$",
                                              "(a?b?)*(c?d?)+",
                                              "(.*/)?x{0,99}",
                                              "(a?b|c){1,99}",
                                              "^/home/[^/]{1,200}/(a?b){0,9}$",
                                              "^(x?){0,60}",
                                              "x?????{0,255}"};
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        char variable[128];
        snprintf(variable, sizeof variable, "MEMSHIM_INCLUDE=%s", expressions[i]);
        load(variable, NULL);
        ok(complaint_count == 0 && strcmp(ms_option_text(MS_OPT_INCLUDE), expressions[i]) == 0, "%s is taken",
           expressions[i]);
    }
}

static void test_long_value(void)
{
    static char variable[6000] = "MEMSHIM_REPORT=";
    memset(variable + 15, 'x', 5000);
    load(variable, NULL);
    ok(complaint_count == 1 && strstr(complaints[0], "shorter than 4096"),
       "a value that does not fit is refused");
    variable[15 + 4095] = '\0';
    load(variable, NULL);
    ok(complaint_count == 0 && strlen(ms_option_text(MS_OPT_REPORT)) == 4095,
       "the longest that fits is taken");
}

static void test_unknown_names(void)
{
    load("MEMSHIM_REPROT=x", "MEMSHIM_COLOUR=y");
    is_int(complaint_count, 2, "each unknown name brings a complaint");
    is_str(complaints[0], "MEMSHIM_REPROT: no such variable; did you mean MEMSHIM_REPORT?",
           "a slip is recognised");
    is_str(complaints[1], "MEMSHIM_COLOUR: no such variable; `memshim env` lists them",
           "another word is not");
    is_int(load("MEMSHIMX=1", "NOT_MEMSHIM_MODE=1"), 0, "names that only look like ours are left alone");
    load("MEMSHIM_=1", NULL);
    is_int(complaint_count, 1, "the bare prefix names nothing");
}

static const char *write_file(const char *text)
{
    static char variable[64];
    char path[] = "/tmp/memshim-test-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail("cannot write %s", path);
    close(fd);
    snprintf(variable, sizeof variable, "MEMSHIM_CONFIG=%s", path);
    return variable;
}

static void test_file(void)
{
    const char *variable =
        write_file("# a comment\n\n  MODE =  track  \nSTACK_DEPTH=7\nLIMT = 3\nLOG loud\nLIMIT=much\n"
                   "CONFIG = /other\nlimit = 2G\nKeep = 1G");
    const char *path = strchr(variable, '=') + 1;
    char expected[256];
    load(variable, "MEMSHIM_STACK_DEPTH=9");
    is_int(ms_option_int(MS_OPT_MODE), MS_MODE_TRACK, "a value from the file");
    is_int(ms_option_source(MS_OPT_MODE), MS_SOURCE_FILE, "its source");
    is_int(ms_option_int(MS_OPT_STACK_DEPTH), 9, "the environment wins");
    is_int(ms_option_source(MS_OPT_STACK_DEPTH), MS_SOURCE_ENVIRONMENT, "and is the source");
    is_u64(ms_option_size(MS_OPT_KEEP, 0), 1 << 30, "the last line needs no newline");
    is_u64(ms_option_size(MS_OPT_LIMIT, 0), UINT64_C(2) << 30, "a name in lower case, in a file");
    is_int(complaint_count, 4, "each bad line brings a complaint");
    snprintf(expected, sizeof expected, "%s:5: LIMT: no such variable; did you mean LIMIT?", path);
    is_str(complaints[0], expected, "with file and line");
    ok(strstr(complaints[1], ":6: \"LOG loud\" is not `name = value`"), "a line without an equals sign");
    ok(strstr(complaints[2], ":7: LIMIT: \"much\" is not a size"), "a bad value in the file");
    ok(strstr(complaints[3], ":8: CONFIG: a file cannot name another file"), "a file in the file");
    unlink(path);

    load("MEMSHIM_CONFIG=/nonexistent/file", NULL);
    ok(complaint_count == 1 && strstr(complaints[0], "cannot read \"/nonexistent/file\""),
       "a file that is not there");
    load("MEMSHIM_CONFIG=/tmp", NULL);
    ok(complaint_count == 1 && strstr(complaints[0], "cannot read \"/tmp\""), "a directory is no file");
}

int main(void)
{
    plan(0);
    test_defaults();
    test_good_values();
    test_sizes();
    test_bad_values();
    test_long_value();
    test_regexes();
    test_unknown_names();
    test_file();
    return done();
}
