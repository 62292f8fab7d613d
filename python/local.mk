# python: the Python package memshim, which pip builds (docs/user/python.md); make only ships it
EXTRA_DIST += python/LICENSE python/README.md python/pyproject.toml \
	python/memshim/__init__.py python/memshim/errors.py python/memshim/fold.def python/memshim/lines.py \
	python/memshim/load.py python/memshim/notebook.py python/memshim/parse.py python/memshim/plot.py \
	python/memshim/py.typed python/memshim/report.py python/memshim/rows.py python/memshim/sizes.py \
	python/memshim/tables.py python/memshim/text.py \
	python/memshim/testing/__init__.py python/memshim/testing/ledger.py python/memshim/testing/measure.py \
	python/memshim/testing/plugin.py python/memshim/testing/rerun.py
