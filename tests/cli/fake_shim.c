/* fake_shim.c - stands in for libmemshim.so in the tests of `memshim run`: writes a small report at the end
 * of every process that has FAKE_GPU in its environment, with as many leaked bytes as that says. No GPU, no
 * hooks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long started_ns;

static long long unix_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
    started_ns = unix_ns();
}

static void expand(const char *pattern, FILE *path)
{
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    for (; *pattern; pattern++) {
        if (*pattern != '%') {
            fputc(*pattern, path);
            continue;
        }
        switch (*++pattern) {
        case 'p':
            fprintf(path, "%d", (int)getpid());
            break;
        case 'h':
            fputs(host, path);
            break;
        case 'R':
            break;
        case 'e':
            fputs(program_invocation_short_name, path);
            break;
        default:
            fputc(*pattern, path);
        }
    }
}

static void print_report(FILE *out, long long leaked)
{
    const char *run = getenv("MEMSHIM_RUN");
    char host[256] = "", id[32] = "";

    gethostname(host, sizeof(host) - 1);
    if (run && *run)
        snprintf(id, sizeof(id), "\"id\": \"%016llx\", ", strtoull(run, NULL, 10));
    fprintf(out,
            "{\"schema_version\": \"1.0\", \"tool\": {\"name\": \"memshim\", \"version\": \"0\", \"commit\": "
            "\"0\"},\n"
            "\"run\": {%s\"argv\": [\"%s\"], \"exe\": \"\", \"cwd\": \"\", \"host\": \"%s\", \"pid\": %d, "
            "\"ppid\": %d,\n"
            " \"start_unix_ns\": %lld, \"end_unix_ns\": %lld, \"end_reason\": \"exit\", \"complete\": true, "
            "\"symbolized\": false},\n",
            id, program_invocation_short_name, host, (int)getpid(), (int)getppid(), started_ns, unix_ns());
    fprintf(
        out,
        "\"config\": [], \"pools\": [], \"apis\": [], \"segments\": [], \"oom\": [], \"findings\": [], "
        "\"modules\": [],\n"
        "\"frames\": [], \"stacks\": [[0, -1]], \"timeline\": {\"bucket_ns\": 1, \"t\": [], \"devices\": "
        "[]},\n"
        "\"coverage\": {\"routes\": {\"exported\": 1, \"dlsym\": 0, \"get_proc_address\": 0}, \"divergent\": "
        "0,\n"
        " \"unseen_frees\": 0, \"late_frees\": 0, \"blind_spots\": []},\n"
        "\"overhead\": {\"calls\": 1, \"report_ns\": 0, \"ledger_bytes\": 0, \"dropped_events\": 0, "
        "\"dropped_stacks\": 0},\n"
        "\"diagnostics\": [], \"devices\": [{\"index\": 0, \"api\": \"cuda\", \"name\": \"fake\", "
        "\"total_bytes\": 0,\n"
        " \"granularity_bytes\": 1, \"live_bytes\": %lld, \"live_count\": %d, \"peak_live_bytes\": %lld, "
        "\"peak_ns\": 0,\n"
        " \"reserved_bytes\": 0, \"peak_reserved_bytes\": 0, \"followed_bytes\": %lld, \"vendor_calls\": 1,\n"
        " \"vendor_calls_saved\": 0, \"reserved_parts\": {\"requested\": 0, \"rounding\": 0, \"limbo\": 0, "
        "\"cached\": 0,\n"
        " \"stranded\": 0, \"pinned\": 0}, \"peak_parts\": {\"requested\": 0, \"rounding\": 0, \"limbo\": 0, "
        "\"cached\": 0,\n"
        " \"stranded\": 0, \"pinned\": 0}}],\n",
        leaked, leaked > 0, leaked, leaked);
    if (!leaked) {
        fprintf(out, "\"sites\": [], \"leaks\": []}\n");
        return;
    }
    fprintf(out,
            "\"sites\": [{\"id\": 0, \"hash\": \"0123456789abcdef\", \"stack\": 0, \"device\": 0, \"api\": "
            "\"cudaMalloc\",\n"
            " \"total_bytes\": %lld, \"total_count\": 2, \"live_bytes\": %lld, \"live_count\": 1, "
            "\"at_peak_bytes\": %lld,\n"
            " \"max_bytes\": %lld, \"lifetime_ns_sum\": 0, \"rounding_bytes\": 0, \"size_hist\": {\"1\": 2}, "
            "\"kind\": \"device\",\n"
            " \"freed_count\": 1}],\n"
            "\"leaks\": [{\"site\": 0, \"bytes\": %lld, \"count\": 1, \"class\": \"at_exit\", \"first_ns\": "
            "0, \"last_ns\": 0}]}\n",
            leaked, leaked, leaked, leaked, leaked);
}

/* As the library does: nothing is replaced. */
static FILE *open_numbered(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash + 1 : path, '.');
    int stem = dot && dot[-1] != '/' ? (int)(dot - path) : (int)strlen(path), number;
    FILE *out = fopen(path, "wx");
    char numbered[4096];

    for (number = 2; !out && errno == EEXIST && number < 100; number++) {
        snprintf(numbered, sizeof(numbered), "%.*s.%d%s", stem, path, number, path + stem);
        out = fopen(numbered, "wx");
    }
    return out;
}

__attribute__((destructor)) static void end(void)
{
    const char *gpu = getenv("FAKE_GPU"), *pattern = getenv("MEMSHIM_REPORT");
    char *path = NULL;
    size_t bytes;
    FILE *out;

    if (!gpu || !pattern || !strcmp(pattern, "none"))
        return;
    out = open_memstream(&path, &bytes);
    if (!out)
        return;
    expand(pattern, out);
    fclose(out);
    out = open_numbered(path);
    if (out) {
        print_report(out, atoll(gpu));
        fclose(out);
    }
    free(path);
}
