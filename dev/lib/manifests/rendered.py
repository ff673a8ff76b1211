"""What kustomize and Helm make of deploy/kubernetes. The chart must make the objects of the kustomizations."""

import os
import shutil
import subprocess

from .files import KUBERNETES, ROOT, parse_yaml, read_yaml
from .kubernetes import check_manifest, check_together

# deploy/test fetches both.
FETCHED = ROOT / ".build/kubernetes"
# Values that the chart must refuse, and a word of the refusal.
REFUSED = [
    ("gatway.enabled=true", "gatway"), ("gateway.replicas=two", "replicas"), ("worker.replicas=0", "replicas"),
    ("console.replicas=2", "replicas"),
    ("keda.enabled=true,worker.replicas=3", "exclude each other"), ("monitoring.docs=docs.example.org", "docs"),
    ("secrets.worker=A b", "secrets"),
]


def tool(name):
    fetched = FETCHED / name / name
    return str(fetched) if os.access(fetched, os.X_OK) else shutil.which(name)


def missing():
    """The programs that are not there; kubectl contains kustomize."""
    return [name for name in ("helm", "kubectl") if tool(name) is None]


def run(name, *words):
    """The output, or a RuntimeError with what the program says."""
    ended = subprocess.run([tool(name), *words], capture_output=True, text=True, cwd=KUBERNETES, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"{name} {' '.join(words)}: {ended.stderr.strip() or ended.stdout.strip()}")
    return ended.stdout


def kustomized(folder):
    return parse_yaml(run("kubectl", "kustomize", folder))


def charted(*words):
    return parse_yaml(run("helm", "template", "pushfleet", ".", *words))


def differences(left, right, path):
    """The places at which two values differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in sorted(set(left) | set(right)):
            yield from differences(left.get(name), right.get(name), f"{path}.{name}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, pair in enumerate(zip(left, right)):
            yield from differences(*pair, f"{path}.{index}")
    elif left != right:
        yield path


def by_name(objects):
    """The objects without their namespace, which Helm gives at the installation."""
    for one in objects:
        one["metadata"].pop("namespace", None)
    return {f"{one['kind']} {one['metadata']['name']}": one for one in objects}


def compare(kustomization, words):
    for place in differences(by_name(kustomized(kustomization)), by_name(charted(*words)), ""):
        yield f"the chart with {' '.join(words) or 'its defaults'} differs from {kustomization}: {place.lstrip('.')}"


def check_objects(objects, where):
    for one in objects:
        yield from check_manifest(one, f"{where}, {one.get('kind')}")
    yield from check_together(objects + read_yaml(KUBERNETES / "secrets.example.yaml"), where)


def check():
    try:
        run("helm", "lint", "--strict", ".")
        for folder in sorted(path.parent for path in KUBERNETES.glob("**/kustomization.yaml")):
            name = str(folder.relative_to(KUBERNETES))
            # Components are parts of the example.
            if "kind: Component" not in (folder / "kustomization.yaml").read_text(encoding="utf-8"):
                yield from check_objects(kustomized(name), name)
        yield from compare("base", [])
        example = "examples/fleet"
        yield from compare(example, ["--values", f"{example}/values.yaml", "--set-file", f"config={example}/config.json5"])
        without = charted("--set", "gateway.enabled=false,console.enabled=false")
        yield from check_objects(without, "the chart without gateways and console")
        with_webhooks = charted(
            "--set", "gateway.enabled=false,console.enabled=false,networkPolicy.enabled=false,webhooks.enabled=true,webhooks.replicas=2")
        if by_name(with_webhooks)["Deployment pushfleet-webhooks"]["spec"]["replicas"] != 2:
            yield "the chart without gateways has no two pods of webhooks"
        if any(part in one["metadata"]["name"] for one in without + with_webhooks for part in ("gateway", "console")):
            yield "the chart without gateways and console has objects of these"
    except RuntimeError as error:
        yield str(error)
    for values, word in REFUSED:
        try:
            charted("--set", values)
            yield f"the chart accepts {values}"
        except RuntimeError as error:
            if word not in str(error):
                yield f"the chart refuses {values} without naming {word}: {error}"
