# memshim for Spack: put this into packages/memshim/ of a repository. scripts/package spack runs it over a stub of Spack's words.
from spack.package import *


class Memshim(AutotoolsPackage):
    """Follows the device memory of unmodified GPU programs: a library to be preloaded, and a command that reads its reports."""

    # The tarball of `make dist` lies wherever this variable of the site says; nothing is downloaded from elsewhere.
    manual_download = True

    license("Apache-2.0 AND MIT", checked_by="memshim")

    version("0.9.0")

    variant("mpi", default=False, description="memshim-merge-mpi, which merges the reports of a job by its own processes")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("elfutils")
    depends_on("jansson@2.12: ~shared")
    depends_on("ncurses")
    depends_on("yajl@2.0:")
    depends_on("zlib-api")
    depends_on("zstd@1.4:")
    depends_on("mpi", when="+mpi")

    conflicts("platform=darwin")
    conflicts("platform=windows")

    def url_for_version(self, version):
        return f"file://{self.stage.path}/memshim-{version}.tar.xz"

    def configure_args(self):
        mpi = self.spec["mpi"].mpicc if self.spec.satisfies("+mpi") else "no"
        return ["--without-cuda", "--with-libunwind=no", f"--with-mpi={mpi}"]

    def setup_run_environment(self, env):
        env.prepend_path("PATH", self.prefix.bin)
