// Helpers shared by the subcommands of `lightcone`.
#pragma once

#include <cstdint>
#include <string>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/runtime/program.h"

namespace lc::tool {

// Opens a checkpoint at a path, or the model inside this program ("builtin").
Weights open_model(const std::string& name, bool map = true);

// A progress line that is redrawn; it is shown on a terminal only.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  void show(std::string_view what, double part, std::string_view more = {});  // part: 0 to 1
  void say(std::string_view line);  // without a bar: nobody knows how much is left
  void clear();
  bool terminal() const { return terminal_; }

 private:
  bool terminal_, shown_ = false;
  double last_ = -1;
};

// Prints the program's notes for its user on the standard error, each sentence once.
void print_notes(const Program& p);

// From here on the first SIGINT or SIGTERM (Ctrl-C) is only recorded; a second one ends the process at once.
void catch_signals();
int caught_signal();  // 0: none
void forget_signal();
bool wait_for_input(int descriptor);  // false: a signal came first

std::string human_bytes(double n);
double peak_rss_bytes();
std::size_t physical_memory();             // bytes this machine has
std::string cpu_name();                    // as the system reports it
double now();                              // seconds
void write_stdout(std::string_view text);  // throws Error if it cannot be written (a full disk)

}  // namespace lc::tool
