"""Where the deployment files are, and how they are read."""

import json
import pathlib

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
KUBERNETES = ROOT / "deploy/kubernetes"


class UniqueKeys(yaml.SafeLoader):
    """Refuses duplicate keys; YAML would use the last one."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        if len(set(keys)) != len(keys):
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: a duplicate key")
        return super().construct_mapping(node, deep)


def read_yaml(path):
    return parse_yaml(path.read_text(encoding="utf-8"))


def parse_yaml(text):
    return [one for one in yaml.load_all(text, UniqueKeys) if one is not None]


def schema(name):
    return json.loads((ROOT / "dev/lib/schemas" / name).read_text(encoding="utf-8"))


def violations(value, schema, where):
    """The violations of the published schema, ordered by place."""
    for error in sorted(jsonschema.Draft202012Validator(schema).iter_errors(value), key=lambda error: list(map(str, error.absolute_path))):
        yield f"{where}: {'.'.join(map(str, error.absolute_path)) or 'the whole'}: {error.message}"
