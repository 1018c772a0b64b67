#!/usr/bin/env bash
# Fails where clang-format 16 would change a C++ file. Other versions format differently.
#
#   tools/check_format.sh               all files
#   tools/check_format.sh FILE...       these
#   tools/check_format.sh --fix ...     formats them instead
set -euo pipefail
cd "$(dirname "$0")/.."
fix=(--dry-run -Werror)
if [ "${1:-}" = --fix ]; then fix=(-i) && shift; fi
formatter=""
for name in clang-format-16 clang-format; do
  if command -v "$name" >/dev/null && "$name" --version | grep -q 'version 16\.'; then formatter=$name && break; fi
done
if [ -z "$formatter" ]; then
  echo "SKIPPED: there is no clang-format 16 (Debian: clang-format-16; pip install clang-format==16.0.6)"
  exit 77
fi
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(find lightcone tests tools bench examples simulators -name '*.h' -o -name '*.cpp' -o -name '*.c' 2>/dev/null); fi
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 40 "$formatter" "${fix[@]}"
