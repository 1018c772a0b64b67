// Exports the decoding steps of the story model for decoding_check.py, with the logits of cpu() at each step.
//
//   stablehlo_decoding MODEL FOLDER
//
// FOLDER gets step0.mlir (a prompt), step1.mlir ... (one token each, at the next position), arguments.txt (a line per
// argument: its kind, its element type and the index of the result that is its next value, or -1), arguments.npz (arg0,
// arg1, ...: weights and initial caches) and expected.npz (tokens, prompt first, and the logits of each step).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lightcone/llm/checkpoint.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/stablehlo/write.h"
#include "npz.h"

namespace {

using namespace lc;

constexpr std::size_t kSteps = 6;  // after the prompt

// Returns weights as f32, which holds bf16 exactly; caches are empty.
Value first_value(const StableHloExport::Argument& a, const Weights& w, const LlamaConfig& config) {
  std::vector<std::int64_t> shape;
  for (const Dim& d : a.type.shape) shape.push_back(*d.constant());
  Value v = make_value(a.type.dtype == DType::F64 ? DType::F64 : DType::F32, shape);
  if (a.name == "rope.frequencies") {
    v.f = config.rope_frequencies;
  } else if (a.kind == StableHloExport::Argument::Kind::Parameter) {
    const std::vector<float> stored = Weights::read(w.at(llm::name_in_file(w, a.name)));
    v.f.assign(stored.begin(), stored.end());
  }
  return v;
}

void write_arguments(const std::filesystem::path& folder, const StableHloExport& e, const Weights& w,
                     const LlamaConfig& config) {
  using Kind = StableHloExport::Argument::Kind;
  std::ofstream list(folder / "arguments.txt");
  test::Npz values;
  for (std::size_t k = 0; k < e.arguments.size(); ++k) {
    const auto& a = e.arguments[k];
    const bool tokens = a.name == "tokens";
    list << (tokens                  ? "tokens"
             : a.kind == Kind::State ? "state"
                                     : "kept")
         << ' ' << stablehlo::element_of(a.type.dtype) << ' ' << a.result << '\n';
    if (!tokens) values.add(str_cat("arg", k), first_value(a, w, config));
  }
  values.save(folder / "arguments.npz");
}

void write_decoding(const std::string& model, const std::filesystem::path& folder) {
  Graph graph;  // before any pass
  LlamaOptions o{.context = 64, .chunk = 16, .threads = 2};
  o.observe = [&](const Pass&, const Graph& before, const Graph&) {
    if (graph.size() == 0) graph = before.clone();
  };
  const Weights weights = Weights::open(model);
  const Llama llama = Llama::load(weights, o);
  LlamaSession session(llama);
  std::filesystem::create_directories(folder);
  std::vector<float> logits;
  std::vector<int> tokens = {1, 403, 407, 261, 378};  // begin of text, and pieces of words
  for (std::size_t step = 0, past = 0; step <= kSteps; ++step) {
    const std::vector<int> next(tokens.begin() + static_cast<std::ptrdiff_t>(past), tokens.end());
    const StableHloExport e = export_stablehlo(
        graph, {{"seq", static_cast<std::int64_t>(next.size())}, {"past", static_cast<std::int64_t>(past)}});
    std::ofstream(folder / str_cat("step", step, ".mlir")) << e.text();
    if (step == 0) write_arguments(folder, e, weights, llama.config());
    past = tokens.size();
    const std::span<const float> now = session.feed(next);
    logits.insert(logits.end(), now.begin(), now.end());
    tokens.push_back(static_cast<int>(std::ranges::max_element(now) - now.begin()));
  }
  test::Npz expected;
  Value ids = make_value(DType::I64, {static_cast<std::int64_t>(tokens.size())});
  ids.i.assign(tokens.begin(), tokens.end());
  expected.add("tokens", ids);
  expected.add("logits", test::numbers(logits));
  expected.save(folder / "expected.npz");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "stablehlo_decoding MODEL FOLDER\n"), 2;
  write_decoding(argv[1], argv[2]);
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 1;
}
