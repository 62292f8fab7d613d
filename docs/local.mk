# docs: pages for users and for who works on memshim; the manual pages are made by src/cli/local.mk
EXTRA_DIST += docs/README.md docs/user docs/internals

# The pictures of architecture.md, by Debian's graphviz. They are kept, with the sum of their source, which scripts/checks/docs compares.
flows:
	@for source in $(srcdir)/docs/internals/flows/*.dot; do \
	    dot -Tsvg "$$source" -o "$${source%.dot}.new" && \
	    sed "s|^<svg|<!-- source $$(sha256sum <"$$source" | cut -c1-16) -->\n&|" "$${source%.dot}.new" >"$${source%.dot}.svg" && \
	    rm "$${source%.dot}.new" || exit 1; \
	done
.PHONY: flows
