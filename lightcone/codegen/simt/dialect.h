// The languages in which kernels for grids of threads are written. What they share is one text (prelude.cpp); what
// differs is a row here: how a kernel begins, and the few primitives that each language spells in its own way.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lc::codegen::simt {

enum class Language : std::uint8_t { Cuda, OpenCl, Metal };

struct Dialect {
  std::string_view name;
  std::string_view head;     // types, address spaces, bit casts, mathematics, shuffles
  std::string_view start;    // of a kernel's definition; $THREADS stands for those of a group, $LEAST for `resident`
  std::string_view place;    // a parameter that is memory; $K its number
  std::string_view size;     // a parameter that is a number; "": all of them come in one array, n_
  std::string_view sizes;    // that array
  std::string_view last;     // parameters behind all others
  std::string_view begin;    // the first line of every kernel
  std::string_view pointer;  // how a place becomes a pointer; $C "const " or "", $T the type, $K the number
  bool f64;                  // does the language have numbers of 64 bits?
};
const Dialect& dialect(Language l);

// What stands before the kernels of a program: the head and all functions they call.
std::string prelude(Language l);

// "<start> name(<parameters>) {" and the pointers p0, p1, ... and sizes n0, n1, ... that they become. `sizes` are of
// type `index`, "int" or "long". `resident`: so many groups at least are to fit a multiprocessor at once, for which the
// compiler of CUDA leaves a thread fewer registers; elsewhere it says nothing. `first`: parameters in front of all
// others, as the language writes them.
struct Parameter {
  std::string type, name;
  bool written = false;
};
std::string begin_kernel(Language l, std::string_view name, int threads, std::span<const Parameter> places,
                         std::size_t sizes, std::string_view index, int resident = 1, std::string_view first = "");

}  // namespace lc::codegen::simt
