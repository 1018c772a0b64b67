// A model as its makers publish it: a folder with config.json and weights, opened by load_model().
#include "lightcone/io/data/array.h"
#include "lightcone/models/load/load_model.h"
#include "workload.h"

namespace lc::bench {
namespace {

class FolderModel final : public Workload {
 public:
  explicit FolderModel(const Json& w) : before_(peak_rss_bytes()), answer_(w.at("answer").get<std::string>()) {
    LoadModelOptions options;
    options.outputs = w.value("outputs", std::vector<std::string>{answer_});
    const Json& shape = w.at("inputs").at(0).at("shape");
    options.batch = shape.at(0).get<std::int64_t>();
    if (w.value("fixed", false))  // the size of pictures or latents, for which the export is made, too
      options.height = shape.at(2).get<std::int64_t>(), options.width = shape.at(3).get<std::int64_t>();
    const std::string path = w.at("path").get<std::string>(), file = w.value("weights", "");
    const LoadedModel model = load_model(file.empty() ? path : path + "/" + file, options);
    program_.emplace(model.program(generic() | cpu(cpu_options(w))));
    context_.emplace(*program_);
    for (const Json& in : w.at("inputs")) context_->set(in.at("name").get<std::string>(), values_of(in));
  }

  void call() override { context_->run(); }
  Json answer() override { return summary(context_->get(answer_)); }
  Json facts() override {
    return {{"kernels", program_->kernels()},
            {"interpreted", program_->interpreted()},
            {"arena", context_->plan().arena_bytes},
            {"rss_before", before_}};
  }

 private:
  double before_;  // the peak of the process before the model
  std::string answer_;
  std::optional<Program> program_;
  std::optional<Context> context_;
};

}  // namespace

std::unique_ptr<Workload> make_model(const Json& w) { return std::make_unique<FolderModel>(w); }

}  // namespace lc::bench
