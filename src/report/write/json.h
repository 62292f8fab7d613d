/* json.h - the parts of the report; private to report.c and json*.c.
 *
 * Floor 4. Each function writes one or a few members of the outer object, in the order of
 * docs/internals/contract.md. */
#ifndef MS_REPORT_WRITE_JSON_H
#define MS_REPORT_WRITE_JSON_H

#include "record/file/process.h"
#include "record/reader/snapshot.h"
#include "report/write/out.h"
#include "record/file/path.h"
#include "report/write/report.h"
#include "report/write/stacks.h"

/* Everything the parts are written from. */
struct ms_report_input {
    const struct ms_snapshot *snapshot;
    const struct ms_report_stacks *stacks;
    enum ms_end_reason reason;
    int code;                 /* the exit code, or the signal's number: report.h */
    uint64_t began_ns;        /* of writing, ms_ledger_now() */
    uint64_t late_frees_at;   /* out: where coverage.late_frees is in the file */
    uint64_t pieces_left_out; /* live ones of inner_segments[]; known behind it */
    bool recovered;           /* from the ledger of another process */
};

/** The number of late frees, in a width that any has. */
#define MS_REPORT_LATE_FREES "%20llu"
/** The whole report. */
void ms_json_write(struct ms_out *out, struct ms_report_input *input);

void ms_json_run(struct ms_out *out, const struct ms_report_input *input); /* json_run.c: run */
void ms_json_devices(struct ms_out *out,
                     const struct ms_report_input *input); /* json_memory.c: devices .. apis */
void ms_json_stacks(struct ms_out *out,
                    const struct ms_report_input *input); /* json_stacks.c: modules .. stacks */
void ms_json_sites(struct ms_out *out,
                   const struct ms_report_input *input); /* json_sites.c: sites .. segments */
void ms_json_events(struct ms_out *out,
                    const struct ms_report_input *input); /* json_events.c: timeline .. findings */

/** Likewise the sites and leaks of a layer. json_sites.c */
void ms_json_layer_sites(struct ms_out *out, const struct ms_report_input *input, enum ms_layer layer);
/** The timeline of a layer. json_events.c */
void ms_json_timeline(struct ms_out *out, const struct ms_snapshot *snapshot, enum ms_layer layer);
/** heaps[] .. inner_timeline, where there is an inner layer. json_inner.c */
void ms_json_inner(struct ms_out *out, struct ms_report_input *input);

/** phases[], and the lines of diagnostics[] about them. json_phases.c */
void ms_json_phases(struct ms_out *out, const struct ms_report_input *input);
void ms_json_phase_diagnostics(struct ms_out *out, const struct ms_report_input *input);

/** Sets those figures of a structure that are told there (enum ms_figure_told, or several of them).
 * json_memory.c */
void ms_json_figures(json_t *json, const struct ms_figure_list *list, unsigned told, const void *figures);
/** The parts of the pool's memory. json_memory.c */
json_t *ms_json_parts(const struct ms_parts *parts);
/** Name, domain and interface of a phase. json_phases.c */
json_t *ms_json_phase_name(const struct ms_phase *phase);
/** oom[] of a layer. json_oom.c */
void ms_json_ooms(struct ms_out *out, const struct ms_report_input *input, enum ms_layer layer);

/** contexts[]. json_memory.c */
void ms_json_contexts(struct ms_out *out, const struct ms_report_input *input);

/** balances[]. json_balance.c */
void ms_json_balances(struct ms_out *out, const struct ms_report_input *input);
/** uses, where MEMSHIM_USES was on. json_uses.c */
void ms_json_uses(struct ms_out *out, const struct ms_report_input *input);
void ms_json_uses_diagnostics(struct ms_out *out, const struct ms_report_input *input);

/** The findings about refused frees. json_invalid_frees.c */
void ms_json_invalid_frees(struct ms_out *out, const struct ms_report_input *input);

/* json_pools.c: pools[], and the segments of the pool */
void ms_json_pools(struct ms_out *out, const struct ms_report_input *input);
void ms_json_pool_segments(struct ms_out *out, const struct ms_report_input *input);
/** The members of a block beside its place: interface, kind, site, ... added to `json`. json_sites.c */
void ms_json_describe_block(json_t *json, const struct ms_block *block);

const char *ms_json_kind_name(enum ms_kind kind);
/** `device`: its index in its interface; and `device_api`, where that is not CUDA. json_memory.c */
void ms_json_set_device(json_t *json, int number);

#endif
