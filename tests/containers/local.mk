# tests/containers: memshim in containers and clusters (docs/user/containers.md)
EXTRA_DIST += tests/containers/room.sh tests/containers/kubernetes.py
dist_check_SCRIPTS += tests/containers/containers.sh
