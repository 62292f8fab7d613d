# docs/user/hooks.md is what the rows say.
echo 1..1
if "$top_builddir/hooks/list_rows" --markdown | diff -u "$top_srcdir/docs/user/hooks.md" - >&2; then
    echo "ok 1 - docs/user/hooks.md equals the rows"
else
    echo "not ok 1 - docs/user/hooks.md differs from the rows: run scripts/generate docs"
fi
