# SPDX-License-Identifier: Apache-2.0
# The Python environment of the other engines, for the scripts beside this file, which source it and set `root`:
# build/peers-venv, made from requirements.txt, about 400 MB of wheels, each pinned by hash, fetched once. A stamp in it
# holds the checksum of that file and of the Python that made it.
#
# Variables: QUERN_PEERS_PYTHON  the Python 3.11 to make the environment with; default: the first of python3.11, python3
#                                and /usr/bin/python3 that is one.
requirements="$root/bench/peers/requirements.txt"
venv="$root/build/peers-venv"

say() { printf 'peers: %s\n' "$*" >&2; }
fail() {
  say "error: $*"
  exit 1
}

# Prints the first Python that can make the environment: the one version that requirements.txt has hashes for, with venv
# and pip.
find_python() {
  local python
  for python in ${QUERN_PEERS_PYTHON:+"$QUERN_PEERS_PYTHON"} python3.11 python3 /usr/bin/python3; do
    if "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      "$python" -c 'import os, sys; print(os.path.realpath(sys.executable))'
      return
    fi
  done
  fail "no fitting Python: ${QUERN_PEERS_PYTHON:-python3}; 3.11 with venv; name one in QUERN_PEERS_PYTHON"
}

make_venv() {
  local python wanted
  python="$(find_python)"
  wanted="$(sha256sum <"$requirements" | cut -d' ' -f1) $python $("$python" --version)"
  if [[ "$(cat "$venv/quern-stamp" 2>/dev/null)" == "$wanted" ]]; then return; fi
  say "making ${venv#"$root/"} with $("$python" --version): duckdb, polars, datafusion, chdb, nanoarrow, numpy, pyarrow"
  mkdir -p "$root/build"
  "$python" -m venv --clear "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
    --requirement "$requirements"
  echo "$wanted" >"$venv/quern-stamp"
}
