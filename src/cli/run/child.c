/* child.c - a program run as a child; see child.h.
 *
 * Floor 5. All signals of interest are blocked while the child runs and taken one at a time with sigwaitinfo,
 * which tells who sent them; the child gets back the mask and dispositions that this process was started
 * with. */
#include "cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

static const int forwarded[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGALRM, SIGURG,  SIGIO};

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Why a name with a slash cannot be run. */
static int child_refuse(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        int error = errno;

        ms_cli_error("cannot run %s: %s", path, strerror(error));
        return error == ENOENT || error == ENOTDIR ? MS_EXIT_NOT_FOUND : MS_EXIT_NOT_EXECUTABLE;
    }
    ms_cli_error("cannot run %s: %s", path,
                 S_ISREG(st.st_mode) ? "it is not executable" : "it is not a file");
    return MS_EXIT_NOT_EXECUTABLE;
}

int ms_child_find(const char *name, char **path_p)
{
    const char *search = getenv("PATH"), *next;
    char *refused = NULL, *candidate;
    struct stat st;
    int status;

    if (strchr(name, '/')) {
        *path_p = is_program(name) ? strdup(name) : NULL;
        return *path_p ? 0 : child_refuse(name);
    }
    for (search = search ? search : "/bin:/usr/bin"; *name && search; search = next) {
        int length = (int)strcspn(search, ":");

        next = search[length] ? search + length + 1 : NULL;
        if (asprintf(&candidate, "%.*s%s%s", length, search, length ? "/" : "./", name) < 0)
            break;
        if (is_program(candidate)) {
            free(refused);
            *path_p = candidate;
            return 0;
        }
        if (!refused && stat(candidate, &st) == 0 && S_ISREG(st.st_mode))
            refused = candidate;
        else
            free(candidate);
    }
    if (refused) {
        status = child_refuse(refused);
        free(refused);
        return status;
    }
    ms_cli_error("cannot run '%s': no such program along PATH", name);
    return MS_EXIT_NOT_FOUND;
}

/* In the child: exec, or tell the parent errno through the pipe, which a successful exec closes. */
static _Noreturn void exec_child(const char *path, char **argv, const struct ms_child *child, int pipe_fd,
                                 const sigset_t *old_mask, const struct sigaction *old_chld)
{
    int error;

    if (child->stdout_to_stderr)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    sigaction(SIGCHLD, old_chld, NULL);
    sigprocmask(SIG_SETMASK, old_mask, NULL);
    execvp(path, argv); /* with a slash in it: no search, but a script without #! goes to the shell */
    error = errno;
    if (write(pipe_fd, &error, sizeof(error)) < 0)
        _exit(MS_EXIT_NOT_EXECUTABLE);
    _exit(MS_EXIT_NOT_FOUND);
}

/* A stopped child stops us, so that the shell takes the terminal back; continued, we continue it. Without a
 * terminal no shell waits for that, and whoever stopped the child continues it alone. */
static void stop_with(pid_t pid)
{
    int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (terminal < 0)
        return;
    close(terminal);
    raise(SIGSTOP);
    kill(pid, SIGCONT);
}

/* Takes what waitpid has; true when the child has ended. */
static bool reap(struct ms_child *child)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(child->pid, &status, WNOHANG | WUNTRACED)) == child->pid) {
        if (WIFSTOPPED(status)) {
            stop_with(child->pid);
            continue;
        }
        child->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        child->status = child->signal ? 128 + child->signal : WEXITSTATUS(status);
        return true;
    }
    if (pid < 0 && errno == ECHILD) {
        child->status = MS_EXIT_FAILED;
        return true;
    }
    return false;
}

static void wait_for_end(struct ms_child *child, const sigset_t *watched)
{
    siginfo_t info;

    while (!reap(child)) {
        int signal = sigwaitinfo(watched, &info);

        /* The kernel's own (Ctrl-C, a hangup) went to the whole process group. */
        if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL)
            kill(child->pid, signal);
    }
}

/* After fork, in the parent: whether exec succeeded. */
static int exec_status(int pipe_fd, const char *path)
{
    int error;
    ssize_t got;

    do
        got = read(pipe_fd, &error, sizeof(error));
    while (got < 0 && errno == EINTR);
    if (got != sizeof(error))
        return 0;
    ms_cli_error("cannot run %s: %s", path, strerror(error));
    return error == ENOENT || error == ENOTDIR ? MS_EXIT_NOT_FOUND : MS_EXIT_NOT_EXECUTABLE;
}

int ms_child_run(const char *path, char **argv, struct ms_child *child)
{
    struct sigaction old_chld, plain = {.sa_handler = SIG_DFL};
    sigset_t watched, old_mask;
    int pipe_fds[2], status;
    size_t i;

    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (i = 0; i < MS_ARRAY_LEN(forwarded); i++)
        sigaddset(&watched, forwarded[i]);
    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        ms_cli_error("cannot start %s: %s", path, strerror(errno));
        return MS_EXIT_FAILED;
    }
    sigaction(SIGCHLD, &plain, &old_chld); /* were it ignored, there would be no status to wait for */
    sigprocmask(SIG_BLOCK, &watched, &old_mask);
    fflush(NULL);
    child->pid = fork();
    if (child->pid == 0)
        exec_child(path, argv, child, pipe_fds[1], &old_mask, &old_chld);
    close(pipe_fds[1]);
    if (child->pid < 0) {
        ms_cli_error("cannot start %s: %s", path, strerror(errno));
        status = MS_EXIT_FAILED;
    } else {
        status = exec_status(pipe_fds[0], path);
        wait_for_end(child, &watched);
    }
    close(pipe_fds[0]);
    sigprocmask(SIG_SETMASK, &old_mask, NULL);
    return status;
}
