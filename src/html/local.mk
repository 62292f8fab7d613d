# src/html: floor 4 above src/export, the page of `memshim html`: docs/user/html.md
CLI_HTML_SOURCES = src/html/page.h src/html/page.c src/html/head.h src/html/head.c src/html/job.h \
	src/html/job.c src/html/rows.h src/html/rows.c src/html/rows_sites.c src/html/rows_time.c \
	src/html/rows_segments.c src/html/columns.h src/html/columns.c src/html/stack_tree.h \
	src/html/stack_tree.c src/html/strings.h src/html/strings.c src/html/base64.h src/html/base64.c \
	src/html/sha256.h src/html/sha256.c

# What the page is made of, in this order; uPlot as it came (NOTICE).
html_scripts = src/html/uplot/uPlot.iife.min.js src/html/page/start.js src/html/page/inflate.js src/html/page/decode.js src/html/page/numbers.js src/html/page/report.js \
	src/html/page/stacks.js src/html/page/holders.js src/html/page/dom.js src/html/page/canvas.js src/html/page/grid.js \
	src/html/page/first.js src/html/page/overview.js src/html/page/time.js src/html/page/flame.js src/html/page/segments.js \
	src/html/page/sites.js src/html/page/phases.js src/html/page/findings.js src/html/page/about.js src/html/page/main.js
html_styles = src/html/uplot/uPlot.min.css src/html/page/page.css
html_body = src/html/page/body.html
EXTRA_DIST += $(html_scripts) $(html_styles) $(html_body)

# As bytes, so that the command needs no file at run time.
CLEANFILES += src/html/page_sources.c
src/html/page_sources.c: $(html_scripts) $(html_styles) $(html_body) src/html/$(am__dirstamp)
	$(AM_V_GEN){ echo '/* Made from src/html/page and src/html/uplot. */' && echo '#include "html/page.h"' && \
	for part in script:'$(html_scripts)' style:'$(html_styles)' body:'$(html_body)'; do \
	name=$${part%%:*} && echo "const unsigned char ms_html_page_$$name[] = {" && \
	for file in $${part#*:}; do cat $(srcdir)/$$file || exit 1; done | \
	LC_ALL=C od -An -v -tx1 | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g' && \
	echo "0};" && echo "const size_t ms_html_page_$${name}_bytes = sizeof(ms_html_page_$$name) - 1;" || exit 1; \
	done; } >$@.tmp && mv $@.tmp $@
