# python: the Python package memshim, which pip builds (docs/user/python.md); make only ships it
EXTRA_DIST += python/LICENSE python/README.md python/pyproject.toml \
	python/memshim/__init__.py python/memshim/errors.py python/memshim/fold.def python/memshim/lines.py \
	python/memshim/load.py python/memshim/notebook.py python/memshim/parse.py python/memshim/plot.py \
	python/memshim/py.typed python/memshim/report.py python/memshim/rows.py python/memshim/sizes.py \
	python/memshim/tables.py python/memshim/text.py python/memshim/trace.py \
	python/memshim/testing/__init__.py python/memshim/testing/ledger.py python/memshim/testing/measure.py \
	python/memshim/testing/plugin.py python/memshim/testing/rerun.py

# What memshim run puts into PYTHONPATH; in a build tree it lies where the command looks for it.
startupdir = $(pkgdatadir)/startup
dist_startup_DATA = python/startup/memshim_startup.py python/startup/sitecustomize.py
noinst_DATA += startup/memshim_startup.py startup/sitecustomize.py
CLEANFILES += startup/memshim_startup.py startup/sitecustomize.py
startup/memshim_startup.py: $(srcdir)/python/startup/memshim_startup.py
	$(AM_V_GEN)$(MKDIR_P) startup && cp -f $(srcdir)/python/startup/memshim_startup.py $@
startup/sitecustomize.py: $(srcdir)/python/startup/sitecustomize.py
	$(AM_V_GEN)$(MKDIR_P) startup && cp -f $(srcdir)/python/startup/sitecustomize.py $@
clean-local:
	rm -rf startup/__pycache__
uninstall-hook: uninstall-startup-cache
uninstall-startup-cache:
	rm -rf '$(DESTDIR)$(startupdir)/__pycache__'
.PHONY: uninstall-startup-cache
