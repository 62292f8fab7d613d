/* page.c - see page.h.
 *
 * Floor 4. The policy allows the browser the script and the style whose hashes it names, and nothing else: no
 * address, no other script, no handler in an attribute. */
#include "html/page.h"

#include <stdlib.h>
#include <string.h>

#include "html/base64.h"
#include "html/head.h"
#include "html/rows.h"
#include "html/sha256.h"

static void put_hash(FILE *out, const unsigned char *bytes, size_t count)
{
    unsigned char digest[MS_SHA256_BYTES];

    ms_sha256(bytes, count, digest);
    fputs("'sha256-", out);
    ms_base64_put(out, digest, sizeof(digest));
    fputc('\'', out);
}

void ms_html_page_begin(FILE *out)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
          "form-action 'none'; script-src ",
          out);
    put_hash(out, ms_html_page_script, ms_html_page_script_bytes);
    fputs("; style-src ", out);
    put_hash(out, ms_html_page_style, ms_html_page_style_bytes);
    fputs("; img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n"
          "<title>memshim</title>\n<style>",
          out);
    fwrite(ms_html_page_style, 1, ms_html_page_style_bytes, out);
    fputs("</style>\n</head>\n<body>\n", out);
    fwrite(ms_html_page_body, 1, ms_html_page_body_bytes, out);
}

/* A block that only the script looks at: what is put between these two. */
static struct ms_base64_deflated *begin_block(FILE *out, const char *name)
{
    fprintf(out, "<div class=\"%s\" hidden>", name);
    return ms_base64_deflated_open(out);
}

static void page_end_block(FILE *out, struct ms_base64_deflated *block)
{
    ms_base64_deflated_close(block);
    fputs("</div>\n", out);
}

/* 0, or -1 without memory. */
static int put_report(FILE *out, struct ms_columns *columns, json_t *head)
{
    struct ms_base64_deflated *block = begin_block(out, "report");
    int status = block ? ms_columns_write(columns, head, block) : -1;

    if (block)
        page_end_block(out, block);
    return status;
}

int ms_html_page_put(FILE *out, const char *path, const struct ms_model *model, json_t *index)
{
    struct ms_columns columns;
    json_t *head = ms_html_head(path, model->report);
    int status = -1;

    if (head && ms_columns_open(&columns) == 0) {
        if (ms_html_rows(&columns, head, model) == 0 &&
            json_array_append_new(index, ms_html_headline(head, model->report)) == 0)
            status = put_report(out, &columns, head);
        ms_columns_close(&columns);
    }
    json_decref(head);
    return status;
}

int ms_html_page_end(FILE *out, const json_t *index)
{
    char *text = json_dumps(index, JSON_COMPACT);
    struct ms_base64_deflated *block = text ? begin_block(out, "index") : NULL;

    if (block) {
        ms_base64_deflated_put(block, text, strlen(text));
        page_end_block(out, block);
    }
    free(text);
    fputs("<script>", out);
    fwrite(ms_html_page_script, 1, ms_html_page_script_bytes, out);
    fputs("</script>\n</body>\n</html>\n", out);
    return block ? 0 : -1;
}
