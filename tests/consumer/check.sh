#!/usr/bin/env bash
# check.sh CMAKE BUILD_DIRECTORY SOURCE: installs the library, then builds and runs a project that
# uses it: once with everything, once where the third-party libraries of lightcone::io are missing. What is
# private cannot be included.
set -euo pipefail
cmake=$1 build=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
if grep -rqF -e "$build" -e "${source%/tests/consumer}" "$work"/prefix/lib*/ --include='*.cmake'; then
  echo "the installed package names the build's own folders"
  exit 1
fi
(cd "$work/prefix/include" && find lightcone -name '*.h' | sort) >"$work/public"
(cd "${source%/tests/consumer}" && find lightcone -name '*.h' | sort) >"$work/sources"
comm -13 "$work/public" "$work/sources" >"$work/private"
for name in backends/cpu/lower.h backends/cpu/products/gemm.h backends/cpu/kernels/vector.inl.h io/images/decoders.h io/text/joins.h \
  ops/internal.h reference/internal.h runtime/program_internal.h runtime/value_memory.h; do
  grep -qxF "lightcone/$name" "$work/private" || { echo "lightcone/$name is private, and installed"; exit 1; }
done
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
includes() { echo "#include <$1>" | "$compiler" -std=c++20 -I"$work/prefix/include" -fsyntax-only -x c++ - 2>"$work/log"; }
includes lightcone/lightcone.h || { cat "$work/log"; exit 1; }
while read -r header; do
  if includes "$header"; then echo "$header is private, and can be included"; exit 1; fi
done <"$work/private"
sed 's/.*/#include <&>/' "$work/public" >"$work/headers.cpp"

configure() {
  "$cmake" -S "$source" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" "${@:2}"
}
configure all -DHEADERS="$work/headers.cpp" >/dev/null
"$cmake" --build "$work/all" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/all/core"
"$work/all/io"
"$work/all/train"

configure bare -DIO=OFF -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON >/dev/null
"$cmake" --build "$work/bare" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/bare/core"
if configure missing -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON >"$work/log" 2>&1; then
  echo "io was found without its libraries"
  exit 1
fi
grep -q "lightcone::io needs libpcre2-8" "$work/log"
