"""Makes the wheel of the package onramp, for `pip install` (PEP 517) and for releases.

    python3 wheel.py LIBRARY DIRECTORY

A wheel is a zip of the package, the compiled library and three descriptions (PEP 427). What the workspace has built is packed as
it is: building for the package alone would take other features of the crates, and so build most of them again. The same library
gives the same bytes.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGE = ["__init__.py", "_native.pyi", "_plot.py", "py.typed"]
# Of the C library: on every system that a manylinux tag names.
LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def version():
    return re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]


def tag(library):
    """For which systems the library is: those with its C library, or only those like this machine."""
    dynamic = subprocess.run(["readelf", "--dynamic", library], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    header = subprocess.run(["readelf", "--file-header", library], capture_output=True, text=True, check=True).stdout
    machine = "aarch64" if "AArch64" in header else "x86_64"
    if not needed <= LIBRARIES:
        return f"linux_{machine}"
    versions = subprocess.run(["readelf", "--version-info", library], capture_output=True, text=True, check=True).stdout
    newest = max(int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", versions))
    return f"manylinux_2_{max(newest, 17)}_{machine}"


def descriptions(tag_):
    metadata = f"""Metadata-Version: 2.4
Name: onramp
Version: {version()}
Summary: Slow start of TCP: recordings, results and sweeps as tables; simulator and replay in-process
License-Expression: MIT
Requires-Python: >=3.9
Provides-Extra: all
Requires-Dist: matplotlib; extra == "all"
Requires-Dist: pandas; extra == "all"
Requires-Dist: polars; extra == "all"
Requires-Dist: pyarrow; extra == "all"
Description-Content-Type: text/markdown

{(ROOT / "docs/python.md").read_text()}"""
    wheel = f"Wheel-Version: 1.0\nGenerator: onramp\nRoot-Is-Purelib: false\nTag: cp39-abi3-{tag_}\n"
    return {"METADATA": metadata.encode(), "WHEEL": wheel.encode()}


def pack(library, directory):
    """Writes the wheel; returns its name."""
    tag_ = tag(library)
    info = f"onramp-{version()}.dist-info"
    name = f"onramp-{version()}-cp39-abi3-{tag_}.whl"
    files = {f"onramp/{file}": (HERE / "onramp" / file).read_bytes() for file in PACKAGE}
    files["onramp/_native.abi3.so"] = pathlib.Path(library).read_bytes()
    files |= {f"{info}/{file}": text for file, text in descriptions(tag_).items()}
    files[f"{info}/licenses/LICENSE-MIT"] = (ROOT / "LICENSE-MIT").read_bytes()

    def line(file, content):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{file},sha256={digest},{len(content)}\n"

    record = "".join(line(*file) for file in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    # Zip has no time before 1980.
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, content in files.items():
            member = zipfile.ZipInfo(file, when)
            member.external_attr = 0o644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(member, content)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """What `pip install` calls: builds the library first, for this machine, with its libelf."""
    build = ["cargo", "build", "--release", "--locked", "--package", "onramp-python"]
    subprocess.run(build, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return pack(target / "release/libonramp_python.so", wheel_directory)


if __name__ == "__main__":
    print(pack(*sys.argv[1:]))
