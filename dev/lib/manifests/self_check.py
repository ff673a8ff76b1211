"""Checks that each rule refuses its violations."""

import copy

from . import rendered
from .files import ROOT, read_yaml
from .kubernetes import check_manifest, check_together
from .others import check_compose, check_image, check_unit


def wrong(manifests):
    """Breaks valid files in one way at a time. Each fault must be found. Returns the number of those that were not."""
    deployment = next(one for one in manifests if one["kind"] == "Deployment" and one["metadata"]["name"] == "pushfleet-worker")
    breaks = [
        (lambda one: one.update(apiVersion="v1"), "unknown kind Deployment of v1"), (lambda one: one.update(speck={}), "'speck' was unexpected"),
        (lambda one: one["spec"].update(replicas="two"), "spec.replicas: 'two' is not of type"),
        (lambda one: one["metadata"].update(name="A_B"), "no name"),
        (lambda one: one["spec"]["selector"].update(matchLabels={"a": "b"}), "doesn't select"),
        (lambda one: one["spec"]["template"]["spec"].pop("securityContext"), "runs as root"),
        (lambda one: one["spec"]["template"]["spec"].pop("volumes"), "there is no volume"),
    ]
    container = [
        (lambda one: one.pop("readinessProbe"), "readinessProbe is missing"),
        (lambda one: one["livenessProbe"]["httpGet"].update(path="/readyz"), "must ask /livez"),
        (lambda one: one["securityContext"].pop("readOnlyRootFilesystem"), "more than it needs"),
        (lambda one: one.update(image="pushfleet"), "no version"), (lambda one: one.update(imgae="x"), "'imgae' was unexpected"),
        (lambda one: one["livenessProbe"]["httpGet"].update(prot=1), "'prot' was unexpected"),
        (lambda one: one["env"].append({"name": "PUSHFLEET_BROKER", "value": "x"}), "belongs into a file"),
    ]
    cases = [(change, said, lambda one: one) for change, said in breaks]
    cases += [(change, said, lambda one: one["spec"]["template"]["spec"]["containers"][0]) for change, said in container]
    count = 0
    for change, said, place in cases:
        broken = copy.deepcopy(deployment)
        change(place(broken))
        found = list(check_manifest(broken, "x"))
        if not any(said in fault for fault in found):
            count += 1
            print(f"self-test: expected {said!r}, got {found}")
    if list(check_manifest(deployment, "x")):
        count += 1
    compose = read_yaml(ROOT / "docker-compose.yml")[0]
    next(iter(compose["services"].values()))["volums"] = []
    if not any("'volums' was unexpected" in fault for fault in check_compose(compose, "x")):
        count += 1
        print("self-test: a service's unknown field is not seen")
    compose["services"]["gateway"]["secrets"].append("apns_key")
    policies = [one for one in manifests if one["kind"] != "NetworkPolicy"]
    broken = copy.deepcopy(manifests)
    for one in broken:
        if one["kind"] == "Deployment":
            one["spec"]["template"]["spec"]["volumes"][1]["secret"]["secretName"] = "pushfleet"
            one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 25
        if one["kind"] == "PodMonitor":
            one["spec"]["podMetricsEndpoints"][0].update(port="metric", intervall="15s")
    monitor = next(one for one in broken if one["kind"] == "PodMonitor")
    for found, said in (
        (check_compose(compose, "x"), "gateway has the providers' keys: apns_key"),
        (check_together(broken, "x"), "gateway has the providers' keys of pushfleet"),
        (check_together(broken, "x"), "no time after drainTimeout"), (check_together(broken, "x"), "a port that isn't there"),
        (check_manifest(monitor, "x"), "'intervall' was unexpected"),
        (check_image("ARG BASE_IMAGE=debian:bookworm-slim\nFROM $BASE_IMAGE\n", "x"), "BASE_IMAGE has no digest"),
        (rendered.differences({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ""), ".a.0.b"),
        (check_together(policies, "x"), "no NetworkPolicy selects gateway"), (check_unit("[Service]\nMemoryMax=\n", "x"), "no MemoryMax"),
    ):
        if not any(said in fault for fault in found):
            count += 1
            print(f"self-test: expected {said!r}")
    return count
