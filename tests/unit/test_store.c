/* test_store.c - tables grow without moving, in memory and in a file, and lose nothing where the file cannot
 * grow; what is in the file is what is in the tables; file systems on the network are told. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/store/store.h"
#include "record/file/journal.h"
#include "tests/tap.h"

enum { ROWS = 200000 };
static char path[200];

static int make_file(void)
{
    snprintf(path, sizeof path, "%s/test.ledger", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
    unlink(path);
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static void write_rows(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        MS_ROWS(BLOCKS, struct ms_block_row)[i].key = i * 7;
}

static bool reads_back(uint64_t rows)
{
    for (uint64_t i = 0; i < rows; i++) {
        if (MS_ROWS(BLOCKS, struct ms_block_row)[i].key != i * 7)
            return false;
    }
    return true;
}

static void test_memory(void)
{
    uint64_t first;
    is_u64(ms_store_bytes(), 0, "nothing is taken before it is asked for");
    ok(ms_table_reserve(MS_TABLE_BLOCKS, 10), "a few rows");
    const char *base = atomic_load(&ms_store_base);
    write_rows(0, 10);
    ok(ms_table_reserve(MS_TABLE_BLOCKS, ROWS), "many rows");
    ok(base == atomic_load(&ms_store_base) && reads_back(10), "are in the same place");
    is_u64(MS_ROWS(BLOCKS, struct ms_block_row)[ROWS - 1].key, 0, "and begin as zeros");
    ok(!ms_table_reserve(MS_TABLE_BLOCKS, (uint64_t)MS_TABLE_BLOCKS_ROWS + 1), "a table has an end");
    ok(ms_table_take(MS_TABLE_SITES, 3, &first) && first == 0 && ms_table_take(MS_TABLE_SITES, 1, &first) &&
           first == 3,
       "rows are given out once");
    ms_table_drop(MS_TABLE_SITES);
    is_u64(ms_table_dropped(MS_TABLE_SITES), 1, "what found no room is counted");
    ms_store_reset();
    is_u64(ms_table_rows(MS_TABLE_SITES) + ms_store_bytes(), 0, "a reset forgets all");
}

/* As the file's own header has it. */
static uint64_t file_bytes(void)
{
    static struct ms_store_header header;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, &header, sizeof header);
    close(fd);
    return length == (ssize_t)sizeof header ? header.file_bytes : 0;
}

static void test_file(void)
{
    int fd = make_file();
    char error[200];
    struct stat status;
    ms_table_reserve(MS_TABLE_BLOCKS, 10);
    write_rows(0, 10);
    is_int(ms_store_attach(fd, path), 0, "a file is attached");
    close(fd);
    ok(reads_back(10), "what was there before is there still");
    ok(ms_table_reserve(MS_TABLE_BLOCKS, ROWS), "the tables grow, without a descriptor");
    write_rows(10, ROWS);
    ms_table_publish(MS_TABLE_BLOCKS, ROWS);
    ok(stat(path, &status) == 0 && (uint64_t)status.st_size == file_bytes() &&
           (uint64_t)status.st_blocks * 512 >= file_bytes(),
       "the file has as many bytes on its disk as in its name");
    is_u64(ms_store_memory_only(), 0, "nothing is in memory alone");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    is_int(ms_store_load(fd, false, error, sizeof error), 0, "the file can be read");
    is_u64(ms_table_rows(MS_TABLE_BLOCKS), ROWS, "it has all rows");
    ok(reads_back(ROWS), "as they were written");
    close(fd);
    ms_store_reset();
}

/* Whoever takes the file's name away must not get our rows in his file. */
static void test_replaced(void)
{
    int fd = make_file();
    struct stat status;
    ms_table_reserve(MS_TABLE_BLOCKS, 10);
    ms_store_attach(fd, path);
    close(fd);
    unlink(path);
    fd = make_file();
    ok(ms_table_reserve(MS_TABLE_BLOCKS, ROWS), "a table grows although its file has gone");
    write_rows(0, ROWS);
    ok(reads_back(ROWS), "in memory");
    ok(fstat(fd, &status) == 0 && status.st_size == 0, "another file of the name is left alone");
    is_int(ms_store_error, ESTALE, "and the reason is known");
    ok(ms_store_memory_only() > 0, "so is how much the file lacks");
    close(fd);
    unlink(path);
    ms_store_reset();
}

static void test_limit(void)
{
    int fd = make_file();
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &limit); /* the default action of SIGXFSZ ends this program */
    is_int(ms_store_attach(fd, path), 0, "a file under a limit");
    ok(ms_table_reserve(MS_TABLE_BLOCKS, ROWS), "a table grows beyond it");
    write_rows(0, ROWS);
    ok(reads_back(ROWS), "in memory");
    is_int(ms_store_error, EFBIG, "and the reason is known");
    ms_store_reset();
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
    is_int(ms_store_attach(fd, path), EFBIG, "a limit below the smallest ledger");
    ok(ms_table_reserve(MS_TABLE_BLOCKS, ROWS), "leaves it in memory");
    setrlimit(RLIMIT_FSIZE, &before);
    close(fd);
    unlink(path);
    ms_store_reset();
}

static void test_networks(void)
{
    struct statfs here;
    is_str(ms_journal_network_name(0x6969), "NFS", "NFS is on the network");
    is_str(ms_journal_network_name((unsigned long)(int)0xff534d42), "CIFS",
           "CIFS is, with its sign extended");
    is_str(ms_journal_network_name(0x65735546), "FUSE", "FUSE may be");
    ok(!ms_journal_network_name(0x01021994) && !ms_journal_network_name(0xef53) &&
           !ms_journal_network_name(0x58465342) && !ms_journal_network_name(0x794c7630),
       "tmpfs, ext4, XFS and overlays are not");
    ok(statfs("/proc", &here) == 0 && !ms_journal_network_name((unsigned long)here.f_type), "nor is /proc");
}

int main(void)
{
    plan(0);
    test_memory();
    test_file();
    test_replaced();
    test_limit();
    test_networks();
    return done();
}
