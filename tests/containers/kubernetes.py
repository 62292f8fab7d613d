#!/usr/bin/env python3
"""Plays packaging/containers/kubernetes.yaml as a cluster would, in rooms of namespaces (room.sh): the init container with its command,
then the program's container with its environment, user, read-only root and volumes. What is not in the file is the image: the installed
tree, the program, and the simulated GPU by which a machine without one has a driver. Prints the reports, one a line.

Usage: kubernetes.py MANIFEST PREFIX PROGRAM LIBRARIES"""
import glob
import os
import subprocess
import sys

import yaml

ROOM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "room.sh")


def volumes_of(spec, place):
    """A directory for each volume, which belongs to the pod's group as fsGroup has it."""
    group = spec["securityContext"]["fsGroup"]
    made = {}
    for volume in spec["volumes"]:
        path = os.path.join(place, volume["name"])
        os.makedirs(path)
        os.chown(path, -1, group)
        os.chmod(path, 0o2775)
        made[volume["name"]] = path
    return made


def play(spec, container, volumes, image):
    """One container: its image's directories, its mounts, its environment."""
    security = dict(spec["securityContext"], **container.get("securityContext", {}))
    words = ["--user", str(security["runAsUser"])]
    words += ["--read-only"] if security.get("readOnlyRootFilesystem") else []
    for pair in image:
        words += ["--volume", pair + ":ro"]
    for mount in container["volumeMounts"]:
        words += ["--volume", volumes[mount["name"]] + ":" + mount["mountPath"] + (":ro" if mount.get("readOnly") else "")]
    # The room is made without the container's environment, which is for its program alone.
    env = ["%s=%s" % (row["name"], row["value"]) for row in container.get("env", [])]
    done = subprocess.run(["sh", ROOM, *words, "--", "env", "-u", "MEMSHIM_DIR", *env, *container["command"]], check=False, timeout=100)
    if done.returncode:
        sys.exit("%s ended with %d" % (container["name"], done.returncode))


def main():
    manifest, prefix, program, libraries = sys.argv[1:]
    with open(manifest, encoding="utf-8") as file:
        spec = yaml.safe_load(file)["spec"]
    volumes = volumes_of(spec, os.environ["TEST_TMP"] + "/pod")
    for container in spec["initContainers"]:
        play(spec, container, volumes, [prefix + ":/opt/memshim"])
    # The driver is where the node's runtime puts it; here that is the simulated one.
    gpu = {"name": "LD_LIBRARY_PATH", "value": "/opt/gpu"}
    for container in spec["containers"]:
        container["env"].append(gpu)
        play(spec, container, volumes, [os.path.dirname(program) + ":/app", libraries + ":/opt/gpu"])
    print("\n".join(glob.glob(volumes["reports"] + "/*")))


main()
