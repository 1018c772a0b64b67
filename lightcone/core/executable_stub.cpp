#include "lightcone/core/graph_impl.h"
namespace lc { class Kernel {}; std::string kernel_name(const Kernel&) { return "kernel"; } }
