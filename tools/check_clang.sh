#!/usr/bin/env bash
# Builds the library, the command and some of the tests with clang, in a folder of its own, and runs them; kernels are
# compiled by the same clang. Not all tests: what depends on the compiler is the arithmetic and the templates, and a runner
# has two cores. The micro-kernels have the level of a release, the rest -O1, which compiles in two thirds of the time.
#   check_clang.sh [clang++-16] [TEST...]
set -euo pipefail
cd "$(dirname "$0")/.."
cxx=${1:-clang++-16}
shift || true
tests=("$@")
[ $# -gt 0 ] || tests=(graph_test dim_test typed_test program_test program_states_test program_products_test verify_test jit_test
                       cpu_test cpu_products_test cpu_odd_values_test cpu_borders_test cpu_states_test ops_test half_test
                       width_test rows_test pipeline_rows_test tile_test gemm_test gemm_bits_test gemm_sums_test
                       microkernel_test group_test attention_test conv_test depthwise_test concurrency_test gguf_test
                       story_test autograd_test module_test)
build=build-$cxx
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLIGHTCONE_UNITY=ON -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" -DCMAKE_CXX_COMPILER="$cxx"
cmake --build "$build" --target lightcone_command "${tests[@]}"
export LIGHTCONE_CC=${cxx/++/}
"$build/bin/lightcone" generate builtin "Once upon a time" -n 20 --temperature 0
ctest --test-dir "$build" -j "$(nproc)" --timeout 1200 --output-on-failure --no-tests=error -R "^($(IFS='|'; echo "${tests[*]}"))\$"
