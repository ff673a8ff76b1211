"""Runs the checks: dev/check-manifests --help."""

import json
import sys

from . import rendered, rules, self_check
from .files import KUBERNETES, ROOT, read_yaml
from .kubernetes import check_manifest, check_together
from .others import check_compose, check_definitions, check_image, check_unit


def manifests():
    """All objects of base and its optional parts, with the place of each."""
    text = (KUBERNETES / "base/config.json5").read_text(encoding="utf-8")
    yield "base", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "pushfleet"}, "data": {"config.json5": text}}
    parts = [path for part in ("base", "webhooks", "keda", "monitoring") for path in sorted((KUBERNETES / part).glob("*.yaml"))]
    for path in [*parts, KUBERNETES / "secrets.example.yaml"]:
        if path.name != "kustomization.yaml":
            for one in read_yaml(path):
                yield str(path.relative_to(KUBERNETES)), one


def faults():
    objects = list(manifests())
    for where, one in objects:
        yield from check_manifest(one, where)
    yield from check_together([one for _, one in objects], "deploy/kubernetes")
    yield from rules.check()
    if absent := rendered.missing():
        print(f"not rendered: {' and '.join(absent)} missing; deploy/test fetches them", file=sys.stderr)
    else:
        yield from rendered.check()
    for compose in read_yaml(ROOT / "docker-compose.yml"):
        yield from check_compose(compose, "docker-compose.yml")
    yield from check_image((ROOT / "deploy/Dockerfile").read_text(encoding="utf-8"), "Dockerfile")
    for path in sorted((ROOT / "deploy/systemd").glob("*.service")):
        yield from check_unit(path.read_text(encoding="utf-8"), path.name)
    yield from check_definitions(json.loads((ROOT / "deploy/rabbitmq/definitions.json").read_text()), "definitions.json")


def main(arguments):
    if arguments == ["--self-test"]:
        return 1 if self_check.wrong([one for _, one in manifests()]) else 0
    if arguments == ["--write"]:
        rules.write()
        return 0
    if arguments:
        print("see dev/check-manifests --help", file=sys.stderr)
        return 64
    found = list(faults())
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
