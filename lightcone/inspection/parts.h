// One function a format; each fills in what the format has.
#pragma once

#include "lightcone/inspection/inspect.h"

namespace lc::inspection {

void describe_onnx_file(FileDescription& d, const InspectOptions& o);
void describe_stablehlo_file(FileDescription& d, const InspectOptions& o);
void describe_checkpoint(const Weights& w, FileDescription& d, const InspectOptions& o);
FileFormat format_of(const Weights& w);
void describe_arrays(FileDescription& d, const InspectOptions& o);
void describe_picture(FileDescription& d, const InspectOptions& o);
void describe_sound(FileDescription& d, const InspectOptions& o);
void describe_tokenizer(FileDescription& d, const InspectOptions& o);

// Plans a graph's memory, with open extents at their least value.
FileDescription::Needs needs_of(const Graph& g);
// Adds a tensor to the list and to the sums.
void add_tensor(FileDescription& d, FileDescription::Stored t, std::int64_t elements);

}  // namespace lc::inspection
