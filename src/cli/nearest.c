/* nearest.c - the word that somebody meant who mistyped it; see nearest.h.
 *
 * Floor 5. */
#include "cli/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { LETTERS_MAX = 32, PREFIX_LEAST = 3 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t two = a < b ? a : b;

    return two < c ? two : c;
}

/* How many letters are to be left out, put in, changed, or to change places with their neighbours. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[LETTERS_MAX + 1][LETTERS_MAX + 1], i, k;

    for (i = 0; i <= a_length; i++)
        rows[i][0] = i;
    for (k = 0; k <= b_length; k++)
        rows[0][k] = k;
    for (i = 1; i <= a_length; i++) {
        for (k = 1; k <= b_length; k++) {
            rows[i][k] =
                least(rows[i - 1][k] + 1, rows[i][k - 1] + 1, rows[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                rows[i - 2][k - 2] + 1 < rows[i][k])
                rows[i][k] = rows[i - 2][k - 2] + 1;
        }
    }
    return rows[a_length][b_length];
}

void ms_nearest_find(struct ms_nearest *nearest, const char *word)
{
    size_t typed = strlen(nearest->typed), length = strlen(word), off;
    bool begins = typed >= PREFIX_LEAST && !strncmp(word, nearest->typed, typed);

    if (typed > LETTERS_MAX || length > LETTERS_MAX)
        return;
    off = begins ? 1 : distance(nearest->typed, typed, word, length);
    if (off > (length + 2) / 3 || (nearest->word && nearest->distance <= off))
        return;
    nearest->word = word;
    nearest->distance = off;
}
