"""Prints the software bill of materials of the program as CycloneDX 1.5 JSON: the program, the libraries linked into it, and the
Debian packages of its shared libraries, as this machine's dpkg knows them. The licences of a package are all those of its source.

Usage: sbom.py PROGRAM VERSION     SOURCE_DATE_EPOCH is the time, in seconds
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries(program):
    """The files of all shared libraries, also of those that libraries need."""
    found = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", output("ldd", program), re.MULTILINE)
    return sorted({os.path.realpath(place) for place in found})


def package(library):
    """The Debian package that owns a library."""
    for place in (library, library.removeprefix("/usr")):
        said = subprocess.run(["dpkg-query", "--search", place], capture_output=True, text=True, check=False).stdout
        if said:
            return said.split(":")[0]
    raise SystemExit(f"sbom: no package owns {library}")


def licences(name):
    """The short names of the licences in the package's copyright file, if it has Debian's machine-readable form."""
    text = pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text(encoding="utf-8", errors="replace")
    if not re.match(r"Format(-Specification)?:", text):
        return []
    # A short name has no spaces, except before `with`, `and` and `or`.
    names = re.findall(r"^License: *(\S+(?: (?:with|and|or) [^\n]+)?)$", text, re.MULTILINE)
    return sorted(set(names))


def debian(name, release):
    version, architecture, source = output(
        "dpkg-query", "--show", "--showformat", "${Version} ${Architecture} ${source:Package}", name).split()
    purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}&distro={release}"
    found = licences(name) or ["see the package's copyright file"]
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        "licenses": [{"license": {"name": licence}} for licence in found],
        "properties": [{"name": "debian:source", "value": source}],
    }


def linked(name, version, licence, description):
    purl = f"pkg:generic/{name}" + (f"@{version}" if version else "")
    return {
        "type": "library", "bom-ref": purl, "name": name, **({"version": version} if version else {}), "purl": purl,
        "description": f"{description}, linked statically", "licenses": [{"license": {"name": licence}}],
    }


def swift_version(program):
    """The version of the Swift in PATH if it built the program: both name the same commit of their compiler. Otherwise None."""
    commit = r"llvm-project\.git ([0-9a-f]{40})"
    built = re.search(commit, output("readelf", "--string-dump=.comment", program))
    swift = shutil.which("swift")
    if not built or not swift:
        return None
    clang = pathlib.Path(swift).resolve().with_name("clang")
    here = clang.exists() and re.search(commit, output(str(clang), "--version"))
    if not here or here[1] != built[1]:
        return None
    return re.search(r"Swift version ([0-9.]+)", output(swift, "--version"))[1]


def bill(program, version):
    content = pathlib.Path(program).read_bytes()
    names = sorted({package(library) for library in libraries(program)})
    release = dict(re.findall(r'^(ID|VERSION_ID)="?([^"\n]+)', pathlib.Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE))
    components = [debian(name, f"{release['ID']}-{release['VERSION_ID']}") for name in names]
    components.append(linked(
        "swift", swift_version(program), "Apache-2.0 WITH Swift-exception", "standard library, Dispatch and Foundation"))
    if icu := re.search(rb"icudt([0-9]+)l", content):
        components.append(linked("icu", icu[1].decode(), "Unicode-3.0", "Unicode data and functions of Foundation"))
    purl = f"pkg:generic/pushfleet@{version}"
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": purl, "name": "pushfleet", "version": version, "purl": purl,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
            },
        },
        "components": components,
        "dependencies": [{"ref": purl, "dependsOn": [one["bom-ref"] for one in components]}]
        + [{"ref": one["bom-ref"]} for one in components],
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    print(json.dumps(bill(sys.argv[1], sys.argv[2]), indent=1))
