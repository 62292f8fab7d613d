# packaging: recipes for packages of distributions (docs/user/packages.md); scripts/package makes them. Nothing of it is installed.
EXTRA_DIST += packaging/debian/changelog packaging/debian/control packaging/debian/copyright packaging/debian/rules \
	packaging/debian/source/format packaging/debian/libmemshim.docs packaging/debian/libmemshim.install \
	packaging/debian/libmemshim.lintian-overrides packaging/debian/libmemshim.triggers packaging/debian/source/lintian-overrides \
	packaging/debian/memshim.docs packaging/debian/memshim.install packaging/debian/memshim-doc.docs \
	packaging/debian/memshim-sim.docs packaging/debian/memshim-sim.install \
	packaging/rpm/memshim.spec packaging/rpm/rpmlint.toml
EXTRA_DIST += packaging/conda/recipe.yaml packaging/conda/check.py packaging/sbom/check.py packaging/spack/package.py packaging/spack/check.py \
	packaging/spack/stub/spack/__init__.py packaging/spack/stub/spack/package.py
EXTRA_DIST += scripts/package
