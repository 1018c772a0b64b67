#!/usr/bin/env bash
# Another project finds the installed library, builds with it and runs, with and without lightcone::io. Private headers cannot be
# included.
#
#   check.sh CMAKE BUILD_DIRECTORY SOURCE
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
for name in backends/cpu/lower.h backends/cpu/products/gemm.h backends/cpu/kernels/vectors/vector.inl.h io/images/decoders.h io/text/pieces/joins.h \
  ops/internal.h reference/internal.h runtime/program_internal.h runtime/value_memory.h; do
  grep -qxF "lightcone/$name" "$work/private" || { echo "lightcone/$name is private, and installed"; exit 1; }
done
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
includes() { echo "#include <$1>" | "$compiler" -std=c++20 -I"$work/prefix/include" -fsyntax-only -x c++ - 2>"$work/log"; }
includes lightcone/lightcone.h || { cat "$work/log"; exit 1; }
while read -r header; do
  if includes "$header"; then echo "$header is private, and can be included"; exit 1; fi
done <"$work/private"
# Every public header, behind macros of other libraries, which are there again behind it; but min and max, which libstdc++
# itself undefines.
{
  grep -v '^#pragma once' "$source/foreign_macros.h"
  grep -v 'lightcone/macros_' "$work/public" | sed 's/.*/#include <&>/'
  sed -n '/^#define m[ai][xn]\b/!s/^#define \([A-Za-z0-9_]*\).*/#ifndef \1\n#error \1 is gone\n#endif/p' "$source/foreign_macros.h"
} >"$work/headers.cpp"

configure() {
  "$cmake" -S "$source" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" "${@:2}"
}
configure all -DHEADERS="$work/headers.cpp" >/dev/null
"$cmake" --build "$work/all" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/all/core"
"$work/all/kernels"
"$work/all/io"
"$work/all/train"
if test -f "$work/prefix/include/lightcone/distributed/mpi/mpi.h"; then
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=false "$work/all/mpi"  # one rank, without a launcher
fi

# Without CMake.
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name lightcone.pc)")
"$compiler" -std=c++20 "$source/core.cpp" $(pkg-config --cflags --libs lightcone) -o "$work/plain_core"
"$work/plain_core"
"$compiler" -std=c++20 "$source/io.cpp" $(pkg-config --cflags --libs lightcone_io) -o "$work/plain_io"
"$work/plain_io"

# Beside the libraries: the command, licence, pages, and examples that build with what is installed.
test "$("$work"/prefix/bin/lightcone --version)" = "$("$build"/bin/lightcone --version)"
doc=$work/prefix/share/doc/lightcone
for file in LICENSE README.md CHANGELOG.md docs/architecture.md examples/seed_2024.cpp examples/CMakeLists.txt; do
  test -f "$doc/$file" || { echo "$file is not installed"; exit 1; }
done
"$cmake" -S "$doc/examples" -B "$work/examples" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
"$cmake" --build "$work/examples" --target seed_2024 first_model >"$work/log" || { cat "$work/log"; exit 1; }
"$work/examples/seed_2024" >/dev/null

# Without the third-party libraries: the core is there, and whoever asks for more reads what is missing.
configure bare -DIO=OFF -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON >"$work/log" 2>&1
grep -q "there is no lightcone::io: it links libraries that were not found: pkg-config, libpcre2-8" "$work/log"
"$cmake" --build "$work/bare" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/bare/core"
refuses() { # NAME SENTENCE OPTIONS...
  if configure "$1" "${@:3}" >"$work/log" 2>&1; then
    echo "$1: io was found"
    exit 1
  fi
  tr -s ' \n' ' ' <"$work/log" | grep -qF "$2" || { cat "$work/log"; exit 1; }  # CMake wraps its lines
}
refuses missing "libpcre2-8 (Debian: libpcre2-dev)" -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON
refuses no_zlib "lightcone::io cannot be had: it links libraries that were not found: zlib (zlib1g-dev)" -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON
refuses no_mpi "lightcone::mpi cannot be had: " -DPART=mpi -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON
refuses unknown "lightcone has no component 'oi': there are core, io and mpi" -DPART=oi
rm "$work"/prefix/lib*/cmake/lightcone/lightconeIoTargets*
refuses without "lightcone::io cannot be had: this copy of lightcone was built without it (LIGHTCONE_IO=OFF)"
