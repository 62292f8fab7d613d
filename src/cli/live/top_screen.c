/* top_screen.c - the screen of memshim top, by ncurses; see top.h.
 *
 * Floor 5. A line is made as text first (top_text.c), so that a process's own texts are plain characters
 * before curses sees them; where the locale is not UTF-8, ASCII. */
#include "config.h"

#include "cli/live/top.h"

#ifndef MS_HAVE_NCURSES
int ms_top_screen(const struct ms_top_watch *watch)
{
    (void)watch;
    return -1;
}
#else
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/live/shares.h"
#include "report/text/text.h"

/* Lines that are no process: the sum, the devices, the heads, the keys. */
enum { HEADS = 2, BELOW = 1, DEVICES_MOST = 4, ROWS_LEAST = 4 };
enum { ESCAPE = 27 };
/* More call sites nobody moves down to; memshim snapshot has all. */
enum { SITES_MOST = 200 };

struct screen {
    const struct ms_top_watch *watch;
    struct ms_top top;
    enum ms_top_order order;
    size_t first;    /* the row at the top */
    size_t selected; /* the row whose call sites are shown when asked for */
    bool sites;      /* they are shown: of `of` */
    struct ms_top_row of;
    char *text;        /* lines of call sites, owned */
    size_t first_line; /* at the top */
    bool utf8, over;
};

static int64_t top_screen_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The last column stays free: a character that is wider than was thought must not end in the next line. */
static size_t width(void)
{
    return COLS > 1 ? (size_t)COLS - 1 : 1;
}

/* Devices have lines where there is room for some processes as well. */
static int devices_shown(const struct screen *screen)
{
    int count = (int)json_array_size(screen->top.shares), room = LINES - HEADS - BELOW - ROWS_LEAST;

    count = count < DEVICES_MOST ? count : DEVICES_MOST;
    return screen->sites || room < 0 ? 0 : count < room ? count : room;
}

static int above(const struct screen *screen)
{
    return HEADS + devices_shown(screen);
}

static size_t height(const struct screen *screen)
{
    int lines = LINES - above(screen) - BELOW;

    return lines > 0 ? (size_t)lines : 0;
}

static void top_screen_put_line(const struct screen *screen, int y, attr_t look, char *text)
{
    for (char *at = text; at && *at; at++)
        if (!screen->utf8 && (unsigned char)*at >= 0x80)
            *at = '?';
    attrset(look);
    move(y, 0);
    clrtoeol();
    addnstr(text ? text : "", (int)(screen->utf8 ? strlen(text ? text : "") : width()));
    attrset(A_NORMAL);
}

static void draw_rows(const struct screen *screen)
{
    for (size_t i = 0; i < height(screen); i++) {
        size_t at = screen->first + i, bytes;
        char *text = NULL;
        FILE *out = at < screen->top.count ? open_memstream(&text, &bytes) : NULL;

        if (out) {
            ms_top_put_row(out, &screen->top.rows[at], width(), screen->top.has_tensors);
            fclose(out);
        }
        top_screen_put_line(screen, above(screen) + (int)i,
                            at == screen->selected && out ? A_BOLD | A_UNDERLINE : A_NORMAL, text);
        free(text);
    }
}

/* Line `number` of the call sites, as wide as the screen; NULL behind the last. */
static char *site_line(const struct screen *screen, size_t number)
{
    const char *at = screen->text;
    char *text = NULL, *line;
    size_t bytes;
    FILE *out;

    while (at && number-- > 0)
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    if (!at || !*at)
        return NULL;
    line = strndup(at, strcspn(at, "\n"));
    out = line ? open_memstream(&text, &bytes) : NULL;
    if (out) {
        ms_text_cut(out, line, width());
        fclose(out);
    }
    free(line);
    return text;
}

/* Its heads stand where those of the processes do. */
static void draw_sites(const struct screen *screen)
{
    char *line = site_line(screen, 0);

    top_screen_put_line(screen, 1, A_REVERSE, line);
    free(line);
    for (size_t i = 0; i < height(screen); i++) {
        line = site_line(screen, 1 + screen->first_line + i);
        top_screen_put_line(screen, above(screen) + (int)i, A_NORMAL, line);
        free(line);
    }
}

static void draw_process(const struct screen *screen)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (!out)
        return;
    ms_top_put_row(out, &screen->of, width(), screen->top.has_tensors);
    fclose(out);
    top_screen_put_line(screen, 0, A_BOLD, text);
    free(text);
}

static void draw_devices(const struct screen *screen)
{
    for (int i = 0; i < devices_shown(screen); i++) {
        char *text = NULL, *line = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);

        if (!out)
            return;
        ms_shares_put(out, json_array_get(screen->top.shares, (size_t)i));
        fclose(out);
        out = open_memstream(&line, &bytes);
        if (out) {
            ms_text_cut(out, text, width());
            fclose(out);
        }
        top_screen_put_line(screen, 1 + i, A_NORMAL, line);
        free(line);
        free(text);
    }
}

static void draw_edges(const struct screen *screen)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    char keys[128];

    if (!out)
        return;
    fputs("memshim top: ", out);
    ms_top_put_sum(out, &screen->top);
    if (screen->over)
        fputs(screen->watch->pid_count == 1 ? "; the process has ended" : "; the processes have ended", out);
    fclose(out);
    text[bytes < width() ? bytes : width()] = '\0';
    top_screen_put_line(screen, 0, A_BOLD, text);
    free(text);
    out = open_memstream(&text, &bytes);
    if (!out)
        return;
    ms_top_put_head(out, width(), screen->top.has_tensors);
    fclose(out);
    text[bytes < width() ? bytes : width()] = '\0';
    top_screen_put_line(screen, above(screen) - 1, A_REVERSE, text);
    free(text);
    snprintf(keys, sizeof(keys), "%.*s", (int)(width() < sizeof(keys) ? width() : sizeof(keys) - 1),
             screen->sites ? "q quit   Enter: the processes   up, down: move"
                           : "q quit   s sort by the next   up, down: move   Enter: call sites");
    if (LINES > above(screen))
        top_screen_put_line(screen, LINES - 1, A_DIM, keys);
    if (width() > 86 && !screen->sites) {
        mvprintw(LINES - 1, 66, "sorted by %s", ms_top_order_names[screen->order]);
        clrtoeol();
    }
}

static void draw(struct screen *screen)
{
    if (screen->selected >= screen->top.count)
        screen->selected = screen->top.count ? screen->top.count - 1 : 0;
    if (screen->selected < screen->first)
        screen->first = screen->selected;
    if (height(screen) && screen->selected >= screen->first + height(screen))
        screen->first = screen->selected - height(screen) + 1;
    if (screen->first && screen->first + height(screen) > screen->top.count)
        screen->first = screen->top.count > height(screen) ? screen->top.count - height(screen) : 0;
    draw_edges(screen);
    draw_devices(screen);
    if (screen->sites) {
        draw_process(screen);
        draw_sites(screen);
    } else {
        draw_rows(screen);
    }
    refresh();
}

/* The selection stays on its process wherever that is sorted to, and the call sites are those of it. */
static void top_screen_follow(struct screen *screen)
{
    for (size_t i = 0; i < screen->top.count; i++) {
        const struct ms_top_row *row = &screen->top.rows[i];

        if (row->pid == screen->of.pid && row->start_unix_ns == screen->of.start_unix_ns &&
            row->device == screen->of.device) {
            screen->selected = i;
            screen->of = *row;
            return;
        }
    }
    if (screen->sites || !screen->top.count)
        return;
    screen->selected = screen->selected < screen->top.count ? screen->selected : screen->top.count - 1;
    screen->of = screen->top.rows[screen->selected];
}

static void top_screen_look_at_sites(struct screen *screen)
{
    free(screen->text);
    screen->text = ms_top_sites(&screen->of, SITES_MOST);
}

static void top_screen_look(struct screen *screen)
{
    struct ms_top top;

    ms_top_sample(screen->watch->pids, screen->watch->pid_count, &screen->top, &top);
    ms_top_release(&screen->top);
    screen->top = top;
    screen->over = screen->watch->pid_count && !top.processes && !top.left_out;
    ms_top_sort(&screen->top, screen->order);
    top_screen_follow(screen);
    if (screen->sites)
        top_screen_look_at_sites(screen);
}

static void toggle_sites(struct screen *screen)
{
    screen->sites = !screen->sites && screen->top.count;
    screen->first_line = 0;
    if (screen->sites)
        top_screen_look_at_sites(screen);
}

static void move_by(struct screen *screen, bool down, size_t by)
{
    size_t *at_p = screen->sites ? &screen->first_line : &screen->selected;

    if (down && screen->sites && *at_p + by >= SITES_MOST)
        return;
    *at_p = down ? *at_p + by : *at_p - (*at_p < by ? *at_p : by);
    if (!screen->sites && screen->top.count) {
        screen->selected = screen->selected < screen->top.count ? screen->selected : screen->top.count - 1;
        screen->of = screen->top.rows[screen->selected];
    }
}

/* True to go on, false to end. */
static bool take_key(struct screen *screen, int key)
{
    size_t page = height(screen) > 1 ? height(screen) - 1 : 1;

    if (key == 'q' || key == ESCAPE || key == EOF)
        return false;
    if (key == 's') {
        screen->order = (enum ms_top_order)((screen->order + 1) % MS_TOP_ORDERS);
        ms_top_sort(&screen->top, screen->order);
        top_screen_follow(screen);
    } else if (key == '\r' || key == '\n' || key == KEY_ENTER) {
        toggle_sites(screen);
    } else if (key == KEY_DOWN || key == 'j' || key == KEY_UP || key == 'k') {
        move_by(screen, key == KEY_DOWN || key == 'j', 1);
    } else if (key == KEY_NPAGE || key == KEY_PPAGE) {
        move_by(screen, key == KEY_NPAGE, page);
    } else if (key == KEY_HOME) {
        move_by(screen, false, SIZE_MAX);
    }
    return true;
}

/* Keys until the next look is due. Whether to go on. */
static bool top_screen_wait_for(struct screen *screen, int64_t due_ms)
{
    int64_t left;

    while ((left = due_ms - top_screen_now_ms()) > 0) {
        int key;

        timeout((int)left);
        key = getch();
        if (key == ERR)
            continue;
        if (!take_key(screen, key))
            return false;
        draw(screen);
    }
    return true;
}

static void run(struct screen *screen)
{
    int64_t begun_ms;

    do {
        begun_ms = top_screen_now_ms();
        top_screen_look(screen);
        draw(screen);
    } while (
        !screen->over &&
        top_screen_wait_for(screen, top_screen_now_ms() + ms_top_rest_ms(screen->watch->interval_ms,
                                                                         top_screen_now_ms() - begun_ms)));
}

int ms_top_screen(const struct ms_top_watch *watch)
{
    struct screen screen = {.watch = watch, .order = watch->order};
    const char *name = getenv("TERM");
    SCREEN *terminal;

    setlocale(LC_CTYPE, "");
    screen.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    terminal = name && strcmp(name, "dumb") ? newterm(NULL, stdout, stdin) : NULL;
    if (!terminal)
        return -1;
    set_term(terminal);
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    run(&screen);
    endwin();
    delscreen(terminal);
    if (screen.over)
        ms_cli_note(watch->pid_count == 1 ? "the process has ended" : "the processes have ended");
    ms_top_release(&screen.top);
    free(screen.text);
    return MS_EXIT_OK;
}
#endif
