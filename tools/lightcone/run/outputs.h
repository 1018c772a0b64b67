// The outputs of a run: printed, written, compared.
#pragma once

#include <string>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/runtime/program.h"
#include "model.h"

namespace lc::tool {

// An output's numbers, whatever their type.
double number_at(const ArrayView& a, std::size_t k);
inline std::size_t count_of(const ArrayView& a) { return a.bytes.size() / size_of(a.dtype); }
std::string shape_text(const ArrayView& a);  // "f32 [1, 84, 8400]"

struct NamedOutput {
  std::string name;
  ArrayView view;                        // the valid part, where a count says how much that is
  std::vector<std::byte> kept = {};      // its bytes, if it is a part
  std::vector<std::string> labels = {};  // texts of which it has the numbers
};
std::vector<NamedOutput> outputs_of(const ModelFile& m, const Context& c);

void print_outputs(const std::vector<NamedOutput>& outputs);
void write_outputs(const std::vector<NamedOutput>& outputs, const std::string& path);
// Prints how far each output is from the array of its name in a file, and returns whether all are within the tolerance.
// Throws Error if none has a name of the file's.
bool compare_outputs(const std::vector<NamedOutput>& outputs, const std::string& path, double tolerance);

}  // namespace lc::tool
