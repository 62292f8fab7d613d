#!/bin/sh
# The page of `memshim html` in a real Chromium, where one is installed: each view drawn, clicks, its figures. All of it, on more reports,
# and what installs a Chromium: scripts/test-browser.
. "$TEST_HELPERS/tap.sh"

[ -z "$TEST_SANITIZE" ] || skip_all "sanitizers watch"
command -v chromium >/dev/null && command -v chromedriver >/dev/null || skip_all "no chromium with its driver"
/usr/bin/python3 -c 'import selenium' 2>/dev/null || skip_all "no selenium"
# The distribution's interpreter: selenium is a package of its.
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$top_srcdir/tests/html/browser.py" "$top_builddir" "$TEST_TMP" --quick
