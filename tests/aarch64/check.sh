#!/bin/sh
# Arm's micro-kernels pass their tests, cross-compiled and run under qemu-user.
#
# Only small cases run, because emulation is slow. The test skips where compiler or emulator are not installed.
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
# Only the micro-kernels are compiled as they are shipped (lightcone/CMakeLists.txt): the rest has tests of its own.
"$cmake" -S "$source" --preset aarch64 -B "$build" -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
"$cmake" --build "$build" --target gemm_test gemm_bits_test microkernel_test conv_test depthwise_test attention_test >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
run() {
  test=$1 filter=$2
  qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu "$build/bin/$test" --gtest_brief=1 --gtest_filter="$filter"
}
{
  run microkernel_test '-*Split*'  # those are of other CPUs' tiles
  run gemm_test 'Gemm.EveryIsaEveryTypeEverySize:Gemm.Strides*:Gemm.BytesAreExact'
  run gemm_bits_test 'Gemm.FewRows*'
  run depthwise_test 'Depthwise.EdgesOfItsSizes:Depthwise.NumbersThatAreNone'
  run attention_test 'Attention.RowsThatSeeNothing:Attention.NanAndInfinity'
} &
others=$!
run conv_test 'Conv.WinogradInGroups:Conv.GroupsRanksAndOddSizes:Conv.NumbersThatAreNone'
wait $others
