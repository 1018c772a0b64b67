// PJRT as a back end: a compiler that hands whole graphs to a plugin, XLA's for GPUs and TPUs for instance.
//
//   Program p = compile(g, generic() | pjrt({.plugin = "/usr/lib/lightcone_pjrt.so"}));
//
// docs/pjrt.md says more.
#pragma once

#include <memory>
#include <string>

#include "lightcone/backends/pjrt/client.h"
#include "lightcone/passes/compiler.h"
#include "lightcone/passes/precision.h"

namespace lc {

struct PjrtOptions {
  // The path of the plugin's library, or a name that the environment variable PJRT_NAMES_AND_LIBRARY_PATHS gives one.
  std::string plugin = {};
  int device = 0;                           // of those that the plugin finds
  backends::pjrt::Attributes options = {};  // for the plugin: {{"memory_fraction", 0.5f}}
  // Of products and convolutions. XLA's DEFAULT, which Medium asks for, means TF32 on NVIDIA's GPUs.
  Precision precision = Precision::Highest;
  // How many compiled programs of a graph are kept. There is one for each binding of its symbolic sizes; with more
  // bindings than this, the one whose last run is longest ago is compiled anew.
  int programs = 64;
};

// The graph becomes one StableHLO program (stablehlo/write.h), which the plugin compiles: at once where all sizes are
// numbers, else in the first run with each binding. Inputs are copied to the device when they are set and parameters
// when they are loaded; states stay there, and give their memory to their next values. A run may still be under way
// when Context::run() returns: reading a result waits for it.
//
// Programs of one process with the same plugin and options share its client. An Error when there is no such plugin or
// device, and in compile() for what StableHLO cannot say.
Compiler pjrt(const PjrtOptions& options);
// With a client that is there already; of the options it takes what is not about finding one.
Compiler pjrt(std::shared_ptr<const backends::pjrt::Client> client, const PjrtOptions& options = {});

}  // namespace lc
