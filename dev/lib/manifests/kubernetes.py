"""The rules for Kubernetes' objects: the published schemas, and what a fleet needs beyond them."""

import re

from .files import schema, violations

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
STANDARD = schema("kubernetes-1.31.json")
RESOURCES = schema("custom-resources.json")
# The definition in a schema for each kind and API version.
KINDS = {
    ("ServiceAccount", "v1"): "io.k8s.api.core.v1.ServiceAccount",
    ("ConfigMap", "v1"): "io.k8s.api.core.v1.ConfigMap",
    ("Secret", "v1"): "io.k8s.api.core.v1.Secret",
    ("Service", "v1"): "io.k8s.api.core.v1.Service",
    ("Deployment", "apps/v1"): "io.k8s.api.apps.v1.Deployment",
    ("PodDisruptionBudget", "policy/v1"): "io.k8s.api.policy.v1.PodDisruptionBudget",
    ("NetworkPolicy", "networking.k8s.io/v1"): "io.k8s.api.networking.v1.NetworkPolicy",
}
CUSTOM = {
    ("TriggerAuthentication", "keda.sh/v1alpha1"), ("ScaledObject", "keda.sh/v1alpha1"),
    ("PodMonitor", "monitoring.coreos.com/v1"), ("PrometheusRule", "monitoring.coreos.com/v1"),
}
# Only the used fields of the databases' operators are known.
OPERATORS = {
    ("RabbitmqCluster", "rabbitmq.com/v1beta1"): {"replicas", "persistence", "tls", "resources", "rabbitmq"},
    ("Cluster", "postgresql.cnpg.io/v1"): {"instances", "storage", "bootstrap"},
}


def labels_match(selector, labels):
    return bool(selector) and all(labels.get(name) == text for name, text in selector.items())


def check_manifest(one, where):
    kind = (one.get("kind"), one.get("apiVersion"))
    if kind in KINDS:
        yield from violations(one, {**STANDARD, "$ref": f"#/$defs/{KINDS[kind]}"}, where)
    elif kind in CUSTOM:
        yield from violations(one, {**RESOURCES, "$ref": f"#/$defs/{kind[0]}"}, where)
    elif kind in OPERATORS:
        for name in sorted(set(one) - {"apiVersion", "kind", "metadata", "spec"} | set(one["spec"]) - OPERATORS[kind]):
            yield f"{where}: unknown field {name}"
    else:
        yield f"{where}: unknown kind {kind[0]} of {kind[1]}"
    if not DNS_LABEL.fullmatch(str(one.get("metadata", {}).get("name", ""))):
        yield f"{where}: metadata.name is no name"
    for field in ("data", "stringData"):
        for name in one.get(field, {}):
            if not re.fullmatch(r"[-._a-zA-Z0-9]+", name):
                yield f"{where}: {field}.{name} must have a plain name"
    if kind[0] == "Deployment":
        yield from check_deployment(one["spec"], where)


def check_deployment(spec, where):
    template = spec.get("template", {})
    if not labels_match(spec.get("selector", {}).get("matchLabels", {}), template.get("metadata", {}).get("labels", {})):
        yield f"{where}: the selector doesn't select the template's pods"
    pod = template.get("spec", {})
    if pod.get("securityContext", {}).get("runAsNonRoot") is not True:
        yield f"{where}: runs as root"
    if pod.get("automountServiceAccountToken") is not False:
        yield f"{where}: has a token of the cluster that it doesn't need"
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in pod.get("containers", []):
        yield from check_container(container, volumes, f"{where}, {container.get('name')}")


def check_container(container, volumes, where):
    ports = {port["name"] for port in container.get("ports", [])}
    # The console is ready without the broker, because it shows that the broker is down.
    ready = "/livez" if container.get("name") == "console" else "/readyz"
    for name, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", ready)):
        probe = container.get(name)
        if probe is None:
            yield f"{where}: {name} is missing"
            continue
        request = probe.get("httpGet", {})
        if request.get("path") != path or request.get("port") not in ports:
            yield f"{where}: {name} must ask {path} on a port of the container's"
    context = container.get("securityContext", {})
    if context.get("allowPrivilegeEscalation") is not False or context.get("readOnlyRootFilesystem") is not True:
        yield f"{where}: may do more than it needs"
    if context.get("capabilities", {}).get("drop") != ["ALL"]:
        yield f"{where}: keeps capabilities"
    if ":" not in container.get("image", "") or container["image"].endswith(":latest"):
        yield f"{where}: the image has no version"
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            yield f"{where}: there is no volume {mount['name']}"
    if "memory" not in container.get("resources", {}).get("limits", {}):
        yield f"{where}: no limit of memory"
    for variable in container.get("env", []):
        if re.search(r"PASSWORD|KEY$|BROKER$|REGISTRY$", variable["name"]) and not variable.get("value", "").startswith("/"):
            yield f"{where}: {variable['name']} belongs into a file"


def check_together(manifests, where):
    """Checks that all references are to existing objects."""
    names = {(one.get("kind"), one.get("metadata", {}).get("name")) for one in manifests}
    # PostgreSQL's operator makes this secret.
    names |= {("Secret", f"{name}-app") for kind, name in names if kind == "Cluster"}
    pods = [one["spec"]["template"] for one in manifests if one.get("kind") == "Deployment"]
    for one in manifests:
        kind, spec = one.get("kind"), one.get("spec", {})
        if kind == "PodDisruptionBudget":
            if sum(labels_match(spec["selector"]["matchLabels"], pod["metadata"]["labels"]) for pod in pods) != 1:
                yield f"{where}: PodDisruptionBudget {one['metadata']['name']} doesn't select one deployment's pods"
            if len({"minAvailable", "maxUnavailable"} & set(spec)) != 1:
                yield f"{where}: a disruption budget has either minAvailable or maxUnavailable"
        if kind == "Service" and not any(labels_match(spec["selector"], pod["metadata"]["labels"]) for pod in pods):
            yield f"{where}: Service {one['metadata']['name']} selects nothing"
        if kind == "PodMonitor":
            ports = {endpoint.get("port") for endpoint in spec["podMetricsEndpoints"]}
            # The console has no metrics, so Prometheus leaves it out.
            for pod in (pod for pod in pods if pod["metadata"]["labels"].get("app.kubernetes.io/component") != "console"):
                if not labels_match(spec["selector"]["matchLabels"], pod["metadata"]["labels"]):
                    yield f"{where}: PodMonitor {one['metadata']['name']} doesn't select {pod['metadata']['labels']}"
                if not ports <= {port["name"] for port in pod["spec"]["containers"][0]["ports"]}:
                    yield f"{where}: PodMonitor {one['metadata']['name']} reads a port that isn't there"
        if kind == "ScaledObject":
            if ("Deployment", spec["scaleTargetRef"]["name"]) not in names:
                yield f"{where}: the ScaledObject's target isn't there"
            for trigger in spec["triggers"]:
                if ("TriggerAuthentication", trigger["authenticationRef"]["name"]) not in names:
                    yield f"{where}: a trigger's authentication isn't there"
                if trigger["type"] != "rabbitmq" or not all(isinstance(value, str) for value in trigger["metadata"].values()):
                    yield f"{where}: a trigger's metadata must be text"
        if kind == "TriggerAuthentication":
            for reference in spec["secretTargetRef"]:
                if ("Secret", reference["name"]) not in names:
                    yield f"{where}: there is no secret {reference['name']}"
    drains = [int(found) for one in manifests if one.get("kind") == "ConfigMap"
              for text in one.get("data", {}).values() for found in re.findall(r"drainTimeout: (\d+)", text)]
    for pod in pods:
        if pod["spec"].get("terminationGracePeriodSeconds", 30) <= max(drains or [25]) + 5:
            yield f"{where}: terminationGracePeriodSeconds leaves no time after drainTimeout"
        labels = pod["metadata"]["labels"]
        policies = [one for one in manifests if one.get("kind") == "NetworkPolicy"]
        if not any(labels_match(one["spec"]["podSelector"]["matchLabels"], labels) for one in policies):
            yield f"{where}: no NetworkPolicy selects {labels.get('app.kubernetes.io/component')}"
        secrets = {volume.get("secret", {}).get("secretName") for volume in pod["spec"].get("volumes", [])}
        command = pod["spec"]["containers"][0].get("args", [None])[0]
        if command != "worker" and (given := secrets_with_keys(manifests) & secrets):
            yield f"{where}: the {command} has the providers' keys of {', '.join(given)}"
        for volume in pod["spec"].get("volumes", []):
            wanted = [("ConfigMap", volume.get("configMap", {}).get("name")), ("Secret", volume.get("secret", {}).get("secretName"))]
            for kind, name in wanted:
                if name and (kind, name) not in names:
                    yield f"{where}: there is no {kind} {name}"


def secrets_with_keys(manifests):
    """Secrets with more than addresses, except certificates."""
    return {
        one["metadata"]["name"] for one in manifests
        if one.get("kind") == "Secret" and one.get("type") != "kubernetes.io/tls" and any("." in name for name in one.get("stringData", {}))
    }
