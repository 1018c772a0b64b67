// A published ONNX model as it is: read from its file, its sizes left open where the file leaves them open. With
// "fixed" the reader is told the sizes of the inputs, and the value of an input that is "known".
#include "lightcone/onnx/onnx.h"
#include "lightcone/io/data/array.h"
#include "workload.h"

namespace lc::bench {

Array values_of(const Json& in) {
  const auto name = in.at("name").get<std::string>();
  const auto shape = in.at("shape").get<std::vector<std::int64_t>>();
  std::size_t count = 1;
  for (const std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  if (in.value("dtype", "f32") == "f32") return Array::of<float>(shape, input_values(name, count));
  std::vector<std::int64_t> whole(count, in.value("value", std::int64_t{0}));
  if (in.contains("below")) whole = class_values(name, count, in.at("below").get<std::int64_t>());
  return Array::of<std::int64_t>(shape, whole);
}

namespace {

class OnnxModel final : public Workload {
 public:
  explicit OnnxModel(const Json& w) : before_(peak_rss_bytes()) {
    OnnxOptions options;
    std::vector<Array> known;
    known.reserve(w.at("inputs").size());
    for (const Json& in : w.at("inputs")) {
      if (w.value("fixed", false)) options.shapes[in.at("name")] = in.at("shape").get<std::vector<std::int64_t>>();
      if (in.value("known", false)) options.values[in.at("name")] = known.emplace_back(values_of(in));
    }
    const OnnxProgram m = read_onnx(w.at("path").get<std::string>(), options);
    program_.emplace(compile(m.graph, generic() | cpu(cpu_options(w))));
    m.load_weights(*program_);
    context_.emplace(*program_);
    for (const Json& in : w.at("inputs"))
      if (!in.value("known", false)) context_->set(in.at("name").get<std::string>(), values_of(in));
    answer_ = w.value("answer", m.outputs.at(0).name);
    const Json feed = w.value("feed", Json::object());
    for (const auto& [output, input] : feed.items()) feed_.emplace_back(output, input.get<std::string>());
  }

  void call() override {
    context_->run();
    for (const auto& [output, input] : feed_) {
      const std::span<const std::byte> state = context_->bytes(output);
      context_->set_bytes(input, state.data(), state.size());
    }
  }
  Json answer() override { return summary(context_->get(answer_)); }
  Json facts() override {
    return {{"kernels", program_->kernels()},
            {"interpreted", program_->interpreted()},
            {"arena", context_->plan().arena_bytes},
            {"rss_before", before_}};
  }

 private:
  double before_;  // the peak of the process before the model
  std::optional<Program> program_;
  std::optional<Context> context_;
  std::string answer_;
  std::vector<std::pair<std::string, std::string>> feed_;  // outputs that become inputs of the next call
};

}  // namespace

std::unique_ptr<Workload> make_onnx(const Json& w) { return std::make_unique<OnnxModel>(w); }

}  // namespace lc::bench
