#!/bin/sh
# The micro-kernels of Arm: their tests, built by a cross compiler and run under qemu-user. Small cases: emulation is slow.
#   check.sh CMAKE SOURCE BUILD
set -eu
cmake=$1 source=$2 build=$3
for program in aarch64-linux-gnu-g++ aarch64-linux-gnu-gcc qemu-aarch64; do
  if ! command -v $program >/dev/null; then
    echo "skipped: $program is not installed (Debian: g++-aarch64-linux-gnu, qemu-user)"
    exit 77
  fi
done
LIGHTCONE_CC=$source/cmake/aarch64-cc LIGHTCONE_CACHE=$build/cache
export LIGHTCONE_CC LIGHTCONE_CACHE
"$cmake" -S "$source" --preset aarch64 -B "$build" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
"$cmake" --build "$build" --target gemm_test dense_unit_test conv_test attention_test >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
