#!/usr/bin/env bash
# check.sh CMAKE BUILD_DIRECTORY SOURCE: installs the library, then builds and runs a project that
# uses it: once with everything, once where the third-party libraries of lightcone::io are missing.
set -euo pipefail
cmake=$1 build=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
if grep -rqF -e "$build" -e "${source%/tests/consumer}" "$work"/prefix/lib*/ --include='*.cmake'; then
  echo "the installed package names the build's own folders"
  exit 1
fi
(cd "$work/prefix/include" && find lightcone -name '*.h' | sort | sed 's/.*/#include <&>/') >"$work/headers.cpp"

configure() {
  "$cmake" -S "$source" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" "${@:2}"
}
configure all -DHEADERS="$work/headers.cpp" >/dev/null
"$cmake" --build "$work/all" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/all/core"
"$work/all/io"

configure bare -DIO=OFF -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON >/dev/null
"$cmake" --build "$work/bare" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/bare/core"
if configure missing -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON >"$work/log" 2>&1; then
  echo "io was found without its libraries"
  exit 1
fi
grep -q "lightcone::io needs libpcre2-8" "$work/log"
