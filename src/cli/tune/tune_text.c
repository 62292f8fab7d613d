/* tune_text.c - what memshim tune prints and writes; see tune.h.
 *
 * Floor 5. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/tune/tune.h"
#include "report/text/text.h"

/* Tables have 80 columns. */
enum { NAME_COLUMNS = 24, MARK = 2 };

static const char defaults_text[] = "the defaults";

static const char *goal_text(enum ms_goal goal)
{
    static const char *const names[] = {"both", "memory", "time"};

    return names[goal];
}

static void row_text(const struct ms_search *search, const struct ms_search_row *row, char text[512])
{
    ms_policy_write(&row->policy, &search->facts, text, 512);
    if (!*text)
        strcpy(text, defaults_text);
}

static struct ms_text_number size_text(uint64_t bytes)
{
    return ms_text_size((json_int_t)bytes);
}

static void print_head(FILE *out, const struct ms_search *search)
{
    size_t events = 0;

    for (size_t i = 0; i < search->trace_count; i++)
        events += search->traces[i].course.count;
    if (search->trace_count == 1)
        ms_text_put(out, search->traces[0].course.title);
    else
        fprintf(out, "%zu traces", search->trace_count);
    fprintf(out, "\n  %zu events, %s live at most%s; replayed on a simulated device of %s\n", events,
            size_text(search->facts.live_peak).text, search->trace_count > 1 ? " in one of them" : "",
            size_text(search->replay_device).text);
    for (size_t i = 0; i < search->trace_count; i++)
        if (ms_course_foreign(&search->traces[i].course)) {
            fprintf(out,
                    "  asked for by %s, and replayed by CUDA's calls: granules and costs may differ there\n",
                    ms_course_foreign(&search->traces[i].course));
            break;
        }
    for (size_t i = 0; i < search->trace_count; i++)
        if (search->traces[i].steps.count) {
            const struct ms_steps *steps = &search->traces[i].steps;

            fprintf(out, "  %zu steps of %zu events repeat behind %zu events to warm up%s\n", steps->count,
                    steps->length, steps->first,
                    search->trace_count > 1 ? ", in the first that has any" : "");
            break;
        }
}

static void print_columns(FILE *out)
{
    fprintf(out, "%-*s  %10s  %12s  %7s  %6s  %9s\n", NAME_COLUMNS + MARK, "", "reserved", "least device",
            "calls", "waits", "lost");
}

static void put_name(FILE *out, const char *name, bool is_best)
{
    fprintf(out, "%c ", is_best ? '*' : ' ');
    ms_text_row_name(out, name, MARK, NAME_COLUMNS);
}

static void put_figures(FILE *out, uint64_t reserved, uint64_t least, uint64_t calls, uint64_t waits,
                        uint64_t ns)
{
    fprintf(out, "  %10s  %12s  %7" PRIu64 "  %6" PRIu64 "  %9s\n", size_text(reserved).text,
            least ? size_text(least).text : "-", calls, waits, ms_text_duration((json_int_t)ns).text);
}

static void print_row(FILE *out, const struct ms_search *search, const struct ms_search_row *row)
{
    char text[512];

    row_text(search, row, text);
    put_name(out, text, row == ms_search_best(search));
    if (row->completed)
        put_figures(out, row->peak, row->least, row->sums.calls, row->sums.waits, row->sums.ns);
    else
        fprintf(out, "  does not fit\n");
}

static void print_table(FILE *out, const struct ms_search *search)
{
    print_columns(out);
    for (size_t i = 1; i < search->row_count; i++)
        print_row(out, search, &search->rows[i]);
    print_row(out, search, &search->rows[0]);
}

/* In steps alone, where there are any. */
static void print_steady(FILE *out, const struct ms_search *search, const struct ms_search_row *best)
{
    size_t steps = 0;

    for (size_t i = 0; i < search->trace_count; i++)
        steps += search->traces[i].steps.count;
    if (steps)
        fprintf(out,
                "Steps  %.1f calls and %s lost in each, %.1f and %s with the defaults; the rest is warm-up\n",
                (double)best->steady.calls / (double)steps,
                ms_text_duration((json_int_t)(best->steady.ns / steps)).text,
                (double)search->rows[0].steady.calls / (double)steps,
                ms_text_duration((json_int_t)(search->rows[0].steady.ns / steps)).text);
}

static const char *more_or_less(int64_t difference)
{
    return difference < 0 ? "less" : "more";
}

/* A replay queues nothing, and its threads take turns: how much that matters, the recorded run says. */
static void print_recorded(FILE *out, const struct ms_tune_program *program)
{
    int64_t bytes = (int64_t)(program->recorded.peak - program->replayed.peak),
            calls = (int64_t)(program->recorded.calls - program->replayed.calls);

    if (!program->compares || (bytes == 0 && calls == 0))
        return;
    fprintf(out,
            "As run %s %s reserved and %" PRIu64
            " calls %s than its own replay: work was queued, the program "
            "waited, or threads took turns; expect as much of any row\n",
            size_text((uint64_t)llabs(bytes)).text, more_or_less(bytes), (uint64_t)llabs(calls),
            more_or_less(calls));
}

/* --- PyTorch's own settings --- */

static uint64_t torch_calls(const struct ms_torch_result *result)
{
    return result->segments + result->segments_freed + result->mapped + result->unmapped;
}

static void print_torch_row(FILE *out, const struct ms_torch_measured *torch, size_t row)
{
    const struct ms_torch_try *tried = &torch->tries[row];

    put_name(out, *tried->settings ? tried->settings : "as it comes", row == torch->best);
    if (tried->result.completed)
        put_figures(out, tried->result.peak_reserved + torch->beside,
                    tried->least ? tried->least + torch->beside : 0, torch_calls(&tried->result),
                    tried->result.segments_freed, tried->lost_ns);
    else
        fprintf(out, "  does not fit\n");
}

/* How many may be advised. */
static size_t torch_tried(const struct ms_torch_measured *torch)
{
    size_t count = 0;

    for (size_t i = 1; i < torch->count; i++)
        count += !torch->tries[i].is_least;
    return count;
}

/* PyTorch as it comes, and those that reserve least. */
static void print_torch(FILE *out, const struct ms_torch_measured *torch)
{
    const struct ms_torch_try *best = &torch->tries[torch->best], *plain = &torch->tries[0];

    if (!torch->count)
        return;
    fprintf(out,
            "PyTorch's own settings, by a model of its allocator, with %s in blocks beside its tensors\n",
            size_text(torch->beside).text);
    print_columns(out);
    for (size_t i = 1; i < torch->count; i++)
        if (torch->tries[i].is_shown)
            print_torch_row(out, torch, i);
    print_torch_row(out, torch, 0);
    for (size_t i = 0; i < torch->count; i++)
        if (torch->tries[i].is_least)
            fprintf(out, "Least  is what %s reserves: with work queued its pool takes more\n",
                    torch->tries[i].settings);
    if (torch->is_off) {
        fprintf(
            out,
            "None   is advised: the run itself had %s of the vendor's, by several streams, graphs' pools,\n"
            "       empty_cache() or settings of its own, none of which the model has\n",
            size_text(torch->had).text);
        return;
    }
    if (!torch->best) {
        fprintf(out, "Best   as it comes: none of %zu settings of PyTorch reserves less\n",
                torch_tried(torch));
        return;
    }
    fprintf(out,
            "Best   of %zu settings of PyTorch, to be set where the program is started:\n"
            "         PYTORCH_ALLOC_CONF=%s\n       ",
            torch_tried(torch), best->settings);
    if (plain->result.completed)
        fprintf(out, "%s less: ", size_text(plain->result.peak_reserved - best->result.peak_reserved).text);
    fprintf(out, "%s\n", best->reason);
    if (best->excludes)
        fprintf(out, "       %s\n", best->excludes);
}

void ms_tune_print(FILE *out, const struct ms_search *search, const struct ms_tune_program *program)
{
    const struct ms_search_row *best = ms_search_best(search), *defaults = &search->rows[0];
    char text[512];

    print_head(out, search);
    print_table(out, search);
    if (!best) {
        fprintf(out, "Fits   with none of the %zu policies that were tried\n", search->tried);
        print_torch(out, &search->torch);
        return;
    }
    print_steady(out, search, best);
    print_recorded(out, program);
    row_text(search, best, text);
    if (best == defaults)
        fprintf(out,
                "Best   the defaults: none of %zu policies is better (goal: %s); there is nothing to set\n",
                search->tried - 1, goal_text(search->goal));
    else
        fprintf(out,
                "Best   of %zu policies (goal: %s), to be set where the program is started:\n         %s\n",
                search->tried, goal_text(search->goal), text);
    print_torch(out, &search->torch);
    fprintf(out,
            "Not known from a trace: work that was queued, so MEMSHIM_LIMBO is left alone; what the program "
            "waits for; other processes.\n"
            "Lost is what the driver's calls take of the caller on %s, without waiting.\n",
            ms_replay_costs_of);
}

static json_t *sums_json(const struct ms_replay_sums *sums)
{
    return json_pack("{s:I, s:I, s:I}", "vendor_calls", (json_int_t)sums->calls, "waits",
                     (json_int_t)sums->waits, "lost_ns", (json_int_t)sums->ns);
}

static json_t *row_json(const struct ms_search *search, const struct ms_search_row *row)
{
    json_t *settings = json_object(), *object;

    for (unsigned i = 0; i < MS_SETTINGS; i++) {
        const char *reason, *name;
        char value[32];

        name = ms_policy_value(&row->policy, &search->facts, i, value, &reason);
        if (name)
            json_object_set_new(settings, name, json_string(value));
    }
    object = json_pack("{s:o, s:b, s:b}", "settings", settings, "fits", row->completed, "chosen",
                       row == ms_search_best(search));
    if (!row->completed)
        return object;
    json_object_set_new(object, "reserved_bytes", json_integer((json_int_t)row->peak));
    if (row->least)
        json_object_set_new(object, "least_device_bytes", json_integer((json_int_t)row->least));
    json_object_set_new(object, "whole", sums_json(&row->sums));
    json_object_set_new(object, "steps", sums_json(&row->steady));
    return object;
}

static json_t *traces_json(const struct ms_search *search)
{
    json_t *traces = json_array();

    for (size_t i = 0; i < search->trace_count; i++) {
        const struct ms_search_trace *trace = &search->traces[i];

        json_array_append_new(
            traces, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s*}", "file", trace->path, "events",
                              (json_int_t)trace->course.count, "live_peak_bytes",
                              (json_int_t)trace->course.live_peak, "steps", (json_int_t)trace->steps.count,
                              "step_events", (json_int_t)trace->steps.length, "warm_up_events",
                              (json_int_t)trace->steps.first, "asked_by", ms_course_foreign(&trace->course)));
    }
    return traces;
}

static json_t *figures_json(const struct ms_tune_figures *figures)
{
    return json_pack("{s:I, s:I}", "reserved_bytes", (json_int_t)figures->peak, "vendor_calls",
                     (json_int_t)figures->calls);
}

static json_t *torch_json(const struct ms_torch_measured *torch)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < torch->count; i++) {
        const struct ms_torch_try *tried = &torch->tries[i];
        json_t *row = json_pack("{s:s, s:b, s:b}", "settings", tried->settings, "fits",
                                tried->result.completed, "chosen", i == torch->best);

        if (tried->result.completed)
            json_object_update_new(row, json_pack("{s:I, s:I, s:I, s:I}", "reserved_bytes",
                                                  (json_int_t)(tried->result.peak_reserved + torch->beside),
                                                  "vendor_calls", (json_int_t)torch_calls(&tried->result),
                                                  "waits", (json_int_t)tried->result.segments_freed,
                                                  "lost_ns", (json_int_t)tried->lost_ns));
        if (tried->least)
            json_object_set_new(row, "least_device_bytes",
                                json_integer((json_int_t)(tried->least + torch->beside)));
        if (tried->is_least)
            json_object_set_new(row, "is_least", json_true());
        if (tried->excludes)
            json_object_set_new(row, "excludes", json_string(tried->excludes));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *ms_tune_json(const struct ms_search *search, const struct ms_tune_program *program,
                     const struct ms_tune_seen *seen)
{
    const struct ms_search_row *best = ms_search_best(search);
    json_t *rows = json_array(), *object;
    char line[512] = "";

    for (size_t i = 0; i < search->row_count; i++)
        json_array_append_new(rows, row_json(search, &search->rows[i]));
    if (best)
        ms_policy_write(&best->policy, &search->facts, line, sizeof(line));
    object =
        json_pack("{s:s, s:I, s:I, s:o, s:s, s:o, s:s?}", "goal", goal_text(search->goal), "device_bytes",
                  (json_int_t)search->replay_device, "tried", (json_int_t)search->tried, "traces",
                  traces_json(search), "costs", ms_replay_costs_of, "rows", rows, "line", best ? line : NULL);
    if (search->torch.count)
        json_object_set_new(object, "pytorch", torch_json(&search->torch));
    if (program->compares)
        json_object_set_new(object, "recorded",
                            json_pack("{s:o, s:o}", "seen", figures_json(&program->recorded), "replayed",
                                      figures_json(&program->replayed)));
    if (seen)
        json_object_set_new(
            object, "check",
            json_pack("{s:o, s:o}", "seen", figures_json(&seen->seen), "told", figures_json(&seen->told)));
    return object;
}

static double percent_off(uint64_t seen, uint64_t told)
{
    return told ? 100.0 * ((double)seen - (double)told) / (double)told : 0;
}

void ms_tune_print_seen(FILE *out, const struct ms_tune_seen *seen)
{
    fprintf(out,
            "Run    with it: %s reserved, %s told (%+.1f%%); %" PRIu64 " calls, %" PRIu64 " told (%+.1f%%)\n",
            size_text(seen->seen.peak).text, size_text(seen->told.peak).text,
            percent_off(seen->seen.peak, seen->told.peak), seen->seen.calls, seen->told.calls,
            percent_off(seen->seen.calls, seen->told.calls));
}

void ms_tune_write(FILE *out, const struct ms_search *search)
{
    const struct ms_search_row *best = ms_search_best(search), *defaults = &search->rows[0];
    bool any = false;

    fprintf(out, "# For MEMSHIM_CONFIG or memshim run --config, by memshim tune (goal: %s)\n",
            goal_text(search->goal));
    for (size_t i = 0; i < search->trace_count; i++) {
        fputs("# from ", out);
        ms_text_put(out, search->traces[i].course.title);
        fputc('\n', out);
    }
    fprintf(out, "# %s reserved, %" PRIu64 " calls of the driver\n", size_text(best->peak).text,
            best->sums.calls);
    if (defaults->completed)
        fprintf(out, "# with the defaults %s and %" PRIu64 "\n", size_text(defaults->peak).text,
                defaults->sums.calls);
    else
        fprintf(out, "# with the defaults it does not fit on %s\n", size_text(search->replay_device).text);
    for (unsigned i = 0; i < MS_SETTINGS; i++) {
        const char *reason, *name;
        char value[32];

        name = ms_policy_value(&best->policy, &search->facts, i, value, &reason);
        if (name && !strncmp(name, "MEMSHIM_", strlen("MEMSHIM_")))
            fprintf(out, "# %s\n%s = %s\n", reason, name + strlen("MEMSHIM_"), value);
        else if (name)
            fprintf(out, "# %s: with memshim run --see-through, or %s=%s\n", reason, name, value);
        any |= name != NULL;
    }
    if (!any)
        fputs("# nothing is better than the defaults\n", out);
    if (search->torch.best)
        fprintf(out, "# of PyTorch's own settings: PYTORCH_ALLOC_CONF=%s\n",
                search->torch.tries[search->torch.best].settings);
}
