#!/usr/bin/env bash
# Installs what is missing on a Debian machine: a compiler, CMake and the libraries that
# docs/dependencies.md explains, and the packages that are named. Does nothing when everything is there.
#   setup.sh [PACKAGE...]
set -euo pipefail
packages=(g++ cmake ninja-build ccache pkg-config python3 nlohmann-json3-dev libpcre2-dev libutf8proc-dev zlib1g-dev libturbojpeg0-dev libpng-dev libflac-dev libcli11-dev libgtest-dev libmpfr-dev openmpi-bin libopenmpi-dev "$@")
# LLVM's library, which compiles kernels where there is no C compiler; other systems have other versions of it, or none.
grep -qs '^VERSION_ID="12"' /etc/os-release && packages+=(libllvm14)
missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null; then
  echo "setup: these are missing, please install them: ${missing[*]}" >&2
  exit 1
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run as root, or install: ${missing[*]}" >&2; exit 1; }
  sudo=sudo
fi
echo "setup: installing ${missing[*]}" >&2
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
