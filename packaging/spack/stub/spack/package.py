"""A stub of what a recipe takes from Spack: each word only notes that it was said. It is here because Spack itself could not be had where
the recipe was written; it knows the words that the recipe uses and refuses others."""
SAID = []


def _directive(name):
    def say(*words, **more):
        SAID.append((name, words, more))

    return say


version, variant, depends_on, conflicts, license = (_directive(name) for name in ("version", "variant", "depends_on", "conflicts", "license"))


class AutotoolsPackage:
    """The attributes that Spack gives an instance."""

    def __init__(self, spec, prefix, stage):
        self.spec, self.prefix, self.stage = spec, prefix, stage


__all__ = ["AutotoolsPackage", "version", "variant", "depends_on", "conflicts", "license"]
