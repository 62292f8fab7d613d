/* line_tables.c - the lines that line tables tell; lines.py holds them against the interpreter.
 *
 * Standard input is records: the version, the first line, how many bytes the table has and how many the byte
 * code, each a 32-bit number, and the table. For each record it writes the line of every instruction (32 bits
 * each; 0: none). */
#include "report/symbols/pylines.h"

#include <stdio.h>
#include <stdlib.h>

struct record {
    uint32_t version, first_line, table_bytes, code_bytes;
};

int main(void)
{
    struct record record;

    while (fread(&record, sizeof record, 1, stdin) == 1) {
        unsigned char *table = malloc(record.table_bytes + 1);
        struct ms_pylines lines;

        if (!table || fread(table, 1, record.table_bytes, stdin) != record.table_bytes)
            return 1;
        ms_pylines_begin(&lines, record.version, table, record.table_bytes, record.first_line);
        for (uint32_t offset = 0; offset < record.code_bytes; offset += 2) {
            int32_t line = (int32_t)ms_pylines_at(&lines, offset);

            fwrite(&line, sizeof line, 1, stdout);
        }
        free(table);
    }
    return fflush(stdout) != 0;
}
