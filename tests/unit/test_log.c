/* test_log.c - one line is one write to standard error, whatever is in it, and does no harm where nobody
 * reads. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/store/store.h"
#include "tests/tap.h"

static int pipe_ends[2], real_stderr;

static void redirect(void)
{
    if (pipe2(pipe_ends, O_NONBLOCK) != 0)
        bail("pipe");
    dup2(pipe_ends[1], STDERR_FILENO);
}

/* What is in the pipe, up to one read. */
static const char *said(void)
{
    static char text[8192];
    ssize_t length = read(pipe_ends[0], text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void test_lines(void)
{
    char expected[128], long_text[3000];
    ms_log(MS_LOG_WARN, "hooks", "text %d", 5);
    snprintf(expected, sizeof expected, "memshim[%d]: warn hooks: text 5\n", (int)getpid());
    is_str(said(), expected, "a line names process, level and room");
    ms_log(MS_LOG_INFO, "hooks", "not wanted");
    is_str(said(), "", "what is above the level is dropped");
    ms_log_set_level(MS_LOG_DEBUG);
    ms_log(MS_LOG_DEBUG, "hooks", "wanted");
    ok(strstr(said(), "debug hooks: wanted\n"), "the level can be raised");
    ms_log_set_level(MS_LOG_NONE);
    ms_log(MS_LOG_ERROR, "hooks", "not wanted");
    is_str(said(), "", "none is none");
    ms_log_set_level(MS_LOG_WARN);
    memset(long_text, 'y', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    ms_log(MS_LOG_WARN, "hooks", "%s", long_text);
    const char *line = said();
    ok(strlen(line) < 1024 && strlen(line) > 900 && line[strlen(line) - 1] == '\n',
       "a long line is cut, and ends");
    ms_log(MS_LOG_WARN, "hooks", "%s", "a\nb\033[31mc");
    ok(strstr(said(), "a?b?[31mc\n"), "a line stays one line, and tells a terminal nothing");
    errno = 99;
    ms_log(MS_LOG_WARN, "hooks", "errno");
    is_int(errno, 99, "errno is left alone");
    said();
}

static void test_diagnostics(void)
{
    ms_diagnostic(MS_LOG_WARN, "options", "first");
    ms_diagnostic(MS_LOG_WARN, "options", "first");
    ms_diagnostic(MS_LOG_DEBUG, "options", "second");
    const char *text = said();
    ok(strstr(text, "options: first\n") && !strstr(strstr(text, "first") + 1, "first"), "said once");
    is_str(ms_diagnostic_line(0), "options: first", "kept");
    is_str(ms_diagnostic_line(1), "options: second", "kept though not said");
    ok(ms_diagnostic_line(2) == NULL, "kept once");
    for (int i = 0; i < 100; i++)
        ms_diagnostic(MS_LOG_DEBUG, "options", "line %d", i);
    is_str(ms_diagnostic_line(63), "options: line 61", "64 lines are kept");
    ok(ms_diagnostic_line(64) == NULL, "and no more");
    ms_store_reset();
    ms_log_reset();
    ok(ms_diagnostic_line(0) == NULL, "a child starts without");
}

/* The default action of SIGPIPE ends this program: that it goes on is the test. */
static void test_no_reader(void)
{
    close(pipe_ends[0]);
    ms_log(MS_LOG_WARN, "hooks", "nobody hears this");
    sigset_t pending;
    sigpending(&pending);
    ok(!sigismember(&pending, SIGPIPE), "no SIGPIPE is left behind");
    close(STDERR_FILENO);
    ms_log(MS_LOG_WARN, "hooks", "nor this");
    ok(true, "a closed standard error does no harm");
}

int main(void)
{
    plan(16);
    real_stderr = dup(STDERR_FILENO);
    redirect();
    test_lines();
    test_diagnostics();
    test_no_reader();
    dup2(real_stderr, STDERR_FILENO);
    return done();
}
