// Shared by the subcommands of `lightcone`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/io/weights.h"
#include "lightcone/runtime/program.h"

namespace lc::tool {

// Each adds its subcommand, with the callback that runs it.
void add_generate(CLI::App& app);
void add_inspect(CLI::App& app);
void add_view(CLI::App& app);
void add_bench(CLI::App& app);

// A path, or "builtin" for the model inside this program.
Weights open_model(const std::string& name, bool map = true);

// The option --threads.
void add_threads(CLI::App& command, int& threads);
void add_precision(CLI::App& command, Precision& precision);
void add_kv_cache(CLI::App& command, DType& type);

// A line that is redrawn, on a terminal only.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  void show(std::string_view what, double part);  // 0 to 1
  void clear();

 private:
  bool terminal_, shown_ = false;
  double last_ = -1;
};

// What the program's user should know, on the standard error, each sentence once.
void print_notes(const Program& p);

std::string human_bytes(double n);
double peak_rss_bytes();
std::size_t physical_memory();             // bytes this machine has
double now();                              // seconds
void write_stdout(std::string_view text);  // Error when it cannot be written (a full disk)

}  // namespace lc::tool
