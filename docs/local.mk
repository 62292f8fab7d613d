# docs: pages for users and for who works on memshim; the manual pages are made by src/cli/local.mk
EXTRA_DIST += docs/user docs/internals
