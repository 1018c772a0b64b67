// PJRT as a back end: a compiler that hands whole graphs to a plugin, XLA's for GPUs and TPUs for instance.
//
//   Program p = compile(g, generic() | pjrt({.plugin = "/usr/lib/lightcone_pjrt.so"}));
//
// See docs/pjrt.md.
#pragma once

#include <memory>
#include <string>

#include "lightcone/backends/pjrt/client.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc {

// Options of the compiler pjrt().
struct PjrtOptions {
  // The path of the plugin's library, or a name that $PJRT_NAMES_AND_LIBRARY_PATHS maps to a path.
  std::string plugin = {};
  int device = 0;                           // index among the devices that the plugin finds
  backends::pjrt::Attributes options = {};  // passed to the plugin: {{"memory_fraction", 0.5f}}
  // Precision of products and convolutions. Medium is XLA's DEFAULT, which means TF32 on NVIDIA's GPUs.
  Precision precision = Precision::Highest;
  // How many compiled programs of a graph are kept. Each binding of its symbolic sizes has one; beyond this number, the
  // least recently used program is dropped, and compiled again when it is needed.
  int programs = 64;
};

// Compiles a graph to one StableHLO program (stablehlo/write.h), which the plugin compiles: at once if all sizes are
// constant, else in the first run with each binding. Inputs are copied to the device when they are set, parameters when
// they are loaded. States stay there and donate their memory to their next values. A run may still be in progress when
// Context::run() returns: reading a result waits for it.
//
// Programs of one process with the same plugin and options share its client. Throws Error if there is no such plugin or
// device; compile() throws Error for what StableHLO cannot express.
Compiler pjrt(const PjrtOptions& options);
// Uses an existing client; `plugin` and the plugin's `options` are ignored.
Compiler pjrt(std::shared_ptr<const backends::pjrt::Client> client, const PjrtOptions& options = {});

}  // namespace lc
