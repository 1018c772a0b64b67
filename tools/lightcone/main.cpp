// The command `lightcone`.
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>

#include "command.h"
#include "lightcone/core/error.h"

namespace {

// Help and the version go to the standard output; a mistake is a sentence like any other.
int said(const CLI::App& app, const CLI::ParseError& e) try {
  std::ostringstream out, words;
  if (app.exit(e, out, words) == 0) {
    lc::tool::write_stdout(out.str());
    return 0;
  }
  std::fprintf(stderr, "lightcone: %s (lightcone --help says more)\n", e.what());
  return 1;
} catch (const lc::Error& wrong) {
  std::fprintf(stderr, "lightcone: %s\n", wrong.what());
  return 1;
}

// Everything that needs memory happens in here.
int run(int argc, char** argv) {
  CLI::App app(
      "Lightcone: deep learning on twelve primitive operations.\n\n"
      "  lightcone generate builtin \"Once upon a time\"     a story from the model inside this program\n"
      "  lightcone generate llama.gguf \"Hello\" -n 50       any Llama, Mistral, TinyLlama or Qwen checkpoint\n"
      "  lightcone inspect llama.gguf                      what is in a file, and what it will need\n"
      "  lightcone view builtin -o graph.html              the graph before and after compiling\n"
      "  lightcone bench                                   this machine's limits and how near we are");
  app.name("lightcone");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("lightcone ") + LIGHTCONE_VERSION);
  app.get_formatter()->column_width(34);
  lc::tool::add_generate(app);
  lc::tool::add_inspect(app);
  lc::tool::add_view(app);
  lc::tool::add_bench(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    return said(app, e);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "lightcone: there is not enough memory\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lightcone: %s\n", e.what());
  }
  return 1;
}
