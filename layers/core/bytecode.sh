#!/bin/sh
# Compiles the layer's modules for Lambda: bytecode.sh FOLDER VERSION UV. A layer is read-only: without bytecode each cold start compiles
# all of it again. Only the same version of Python can make it: one that is installed here, one that uv downloads, or Debian 13's.
# If none can be had, the layer works and starts more slowly; RELEASE=1 makes that an error.
set -eu
folder=$1 version=$2 uv=$3

is_python() { "$@" -c "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, '$version'.split('.'))))" 2>/dev/null; }

compile() { "$@" -m compileall -q --invalidation-mode unchecked-hash "$folder"; }

# pyenv has a shim on the path for every version, which fails for versions that are not chosen. uv gives up at the first such shim.
for python in "python$version" "${HOME:-}/.pyenv/versions/$version".*"/bin/python$version" \
  "$("$uv" python find --no-python-downloads "$version" 2>/dev/null || true)"; do
  if is_python "$python"; then
    compile "$python"
    exit
  fi
done

set -- "$uv" run --quiet --no-project --managed-python --python "$version" python
if is_python "$@"; then
  compile "$@"
  exit
fi

# As root on a Debian or Ubuntu of another version: the package debootstrap makes a Debian 13, whose Python is 3.13.
if [ "$version" = 3.13 ] && [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  if debootstrap --variant=minbase --include=python3-minimal trixie "$root" >/dev/null 2>&1; then
    cp -R "$folder" "$root/layer"
    compiled=$folder folder=/layer
    compile chroot "$root" python3
    cp -R "$root/layer/." "$compiled"
    exit
  fi
fi

echo "no Python $version is installed, and none could be downloaded: the layer has no bytecode" >&2
[ "${RELEASE:-}" != 1 ]
