"""The rules for the compose file, the image, systemd's units and RabbitMQ's definitions."""

import re

from .files import schema, violations

COMPOSE = schema("compose-spec.json")


def check_image(text, where):
    bases = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)", text, re.MULTILINE))
    last = re.findall(r"^FROM \$(\w+)", text, re.MULTILINE)[-1]
    if not re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", bases.get(last, "")):
        yield f"{where}: the base {last} has no digest"


def check_unit(text, where):
    for setting in ("MemoryMax", "TasksMax"):
        if not re.search(rf"^{setting}=\S", text, re.MULTILINE):
            yield f"{where}: no {setting}"


def check_compose(compose, where):
    yield from violations(compose, COMPOSE, where)
    for name, service in compose.get("services", {}).items():
        keys = {"apns_key", "service_account"} & set(map(str, service.get("secrets", [])))
        if keys and name != "worker":
            yield f"{where}: {name} has the providers' keys: {', '.join(sorted(keys))}"
        if "healthcheck" not in service:
            yield f"{where}: {name} has no healthcheck"
        for field, known in (("secrets", "secrets"), ("configs", "configs")):
            for entry in service.get(field, []):
                source = entry if isinstance(entry, str) else entry["source"]
                if source not in compose.get(known, {}):
                    yield f"{where}: {name} uses {field} {source}, which aren't there"
        for volume in service.get("volumes", []):
            if isinstance(volume, str) and not volume.startswith((".", "/")) and volume.split(":")[0] not in compose.get("volumes", {}):
                yield f"{where}: {name} uses the volume {volume.split(':')[0]}, which isn't there"
        for other in service.get("depends_on", {}):
            if other not in compose["services"]:
                yield f"{where}: {name} depends on {other}, which isn't there"
        for port in service.get("ports", []):
            if not str(port).startswith("127.0.0.1:"):
                yield f"{where}: {name} listens beyond loopback"


def check_definitions(definitions, where):
    users = {user["name"] for user in definitions["users"]}
    for user in definitions["users"]:
        if user.get("password_hash") != "":
            yield f"{where}: {user['name']} has a password that everybody knows"
    for permission in definitions["permissions"]:
        if permission["user"] not in users:
            yield f"{where}: permissions of {permission['user']}, who isn't there"
        for field in ("configure", "write", "read"):
            re.compile(permission[field])
    losing = {"max-length", "message-ttl", "expires", "overflow", "delivery-limit", "dead-letter-exchange"}
    for policy in definitions["policies"]:
        re.compile(policy["pattern"])
        for name in sorted(losing & set(policy["definition"])):
            yield f"{where}: policy {policy['name']} sets {name}, which can lose messages"
