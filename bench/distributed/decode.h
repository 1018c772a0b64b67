// Decoding with a language model that several ranks hold together.
#pragma once

#include <memory>

#include "bench/runner/protocol.h"

namespace lc::bench {

// {"kind": "decode", "path": a GGUF file, "threads": ..., "precision": ...}
std::unique_ptr<Workload> make_decoding(const Json& w);

}  // namespace lc::bench
