#!/usr/bin/env bash
# Tests of the Python package with what the workspace has built, in a virtual environment with the libraries that take its
# tables. The last line counts.
set -euo pipefail
cd "$(dirname "$0")"

onramp=$(readlink -f "${ONRAMP_BIN:-${CARGO_TARGET_DIR:-../target}/release/onramp}")
built=$(dirname "$onramp")
environment=$(dirname "$built")/tools/python
package=$(mktemp -d)
trap 'rm -r "$package"' EXIT

if [ ! -x "$environment/bin/pip" ]; then
	python3 -m venv "$environment"
fi
if ! "$environment/bin/pip" install --quiet --disable-pip-version-check --retries 1 --requirement tests/requirements.txt; then
	echo "SKIP: the Python package: pip cannot install what its tests need"
	echo "0 passed, 0 failed, 1 skipped"
	[ "${ONRAMP_REQUIRE:-}" != 1 ]
	exit
fi
# As in the wheel.
cp -r onramp "$package"
cp "$built/libonramp_python.so" "$package/onramp/_native.abi3.so"
PYTHONPATH=$package ONRAMP_LAB=$built/onramp-lab "$environment/bin/python" tests/test_onramp.py
