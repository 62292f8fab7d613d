# packaging/containers: recipes for containers and clusters (docs/user/containers.md). What clusters run is installed.
dist_pkgdata_DATA += packaging/containers/modulefile
dist_pkgdata_SCRIPTS = packaging/containers/slurm-task-prolog
EXTRA_DIST += packaging/containers/Containerfile packaging/containers/kubernetes.yaml packaging/containers/apptainer.def
