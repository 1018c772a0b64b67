// The languages of kernels for grids of threads. Their common text is in prelude.cpp. A row here has the differences:
// how a kernel begins, and the few primitives that each language spells differently.
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
  std::string_view start;    // begin of a kernel's definition; $THREADS: threads of a block, $LEAST: `resident`
  std::string_view buffer;   // the parameter of a buffer; $K: its number
  std::string_view size;     // a size parameter; "": all sizes come in one array, n_
  std::string_view sizes;    // the parameter for that array
  std::string_view last;     // parameters after all others
  std::string_view begin;    // first line of every kernel
  std::string_view pointer;  // conversion of a memory parameter to a pointer; $C: "const " or "", $T: type, $K: number
  bool f64;                  // the language has 64-bit floats
};
const Dialect& dialect(Language l);

// Returns the text before the kernels of a program: the head and all functions they call.
std::string prelude(Language l);

// Returns "<start> name(<parameters>) {" with the definitions of the pointers p0, p1, ... and the sizes n0, n1, ...
// `index`, "int" or "long", is the type of the sizes. `resident`: at least this many thread blocks should fit a
// multiprocessor at once, for which CUDA's compiler limits registers per thread; the other languages ignore it.
// `first`: parameters before all others, in the language's syntax.
struct Parameter {
  std::string type, name;
  bool written = false;
};
std::string begin_kernel(Language l, std::string_view name, int threads, std::span<const Parameter> parameters,
                         std::size_t sizes, std::string_view index, int resident = 1, std::string_view first = "");

}  // namespace lc::codegen::simt
