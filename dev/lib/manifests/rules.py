"""The alert rules as an object of the Prometheus operator. The copy must equal deploy/monitoring/alerts.yml."""

import re

from .files import KUBERNETES, ROOT

PLACE = KUBERNETES / "monitoring/rules.yaml"
HEAD = """# Made of deploy/monitoring/alerts.yml by dev/check-manifests --write; don't edit.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: pushfleet
spec:
"""


def made():
    text = (ROOT / "deploy/monitoring/alerts.yml").read_text(encoding="utf-8")
    return HEAD + re.sub(r"^(?=.)", "  ", text[text.index("groups:\n"):], flags=re.MULTILINE)


def check():
    if PLACE.read_text(encoding="utf-8") != made():
        yield "monitoring/rules.yaml: not made of this alerts.yml: dev/check-manifests --write"


def write():
    PLACE.write_text(made(), encoding="utf-8")
