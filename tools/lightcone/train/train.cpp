// lightcone train: trains a model by a configuration.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <sstream>

#include "../command.h"
#include "../commands.h"
#include "data.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/parts.h"
#include "lightcone/io/printable.h"
#include "ranks.h"
#include "run_log.h"
#include "task.h"

namespace lc::tool {
namespace {

namespace fs = std::filesystem;

// Formats a double for a checkpoint's metadata, with every bit.
std::string exact(double v) { return formatted("%a", v); }

std::string duration(double seconds) {
  const auto s = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  return s >= 3600 ? formatted("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60)
                   : formatted("%lld:%02lld", s / 60, s % 60);
}

std::string shortened(double v) { return formatted("%.4g", v); }

// The state of a run besides the states of its program.
struct Progressed {
  double best = INFINITY;  // held-out loss
  i64 best_step = 0, evaluations_since = 0;
  double sum = 0;  // sum of the losses since the last line of the log
  i64 summed = 0;
  double seconds = 0;
};

class Run {
 public:
  Run(const TrainConfig& c, const Pretrained* first, const PretrainedClassifier* classifier, const TrainOptions& o,
      const RunRanks& ranks, int threads);
  int go();

 private:
  std::string path(const char* name) const { return c_.folder + "/" + name; }
  void say(const std::string& text) const {
    if (ranks_.first()) write_stdout(text);
  }
  void refuse_another_run() const;
  std::string checkpoint() const { return io::latest_checkpoint(path("run.safetensors")); }
  std::unique_ptr<TrainingData> read_data() const;
  void check_data() const;
  void prepare_folder();
  void resume();
  void load_weights();
  std::string vocabulary_mark() const;
  float checked_step();
  Arrays batch_of_all();
  void one_step();
  void evaluate(LogLine& line);
  void add_to_log(const LogLine& line);
  void keep_best();
  void save();
  void show_progress(float loss);
  int finished(const std::string& why);
  double rate() const;
  bool due(i64 every) const { return task_->trainer().steps() % every == 0; }
  // Returns the name of a saved language model.
  const char* spoken_name() const { return first_ ? Pretrained::result_name(first_->weights) : "model.gguf"; }
  std::string rate_unit() const { return c_.language() ? "tok/s" : "samples/s"; }

  const TrainConfig& c_;
  const Pretrained* first_;
  const PretrainedClassifier* classifier_;
  const TrainOptions& o_;
  const RunRanks& ranks_;
  std::optional<Task> task_;
  std::string facts_;
  std::unique_ptr<TrainingData> data_;
  std::optional<io::FolderLock> lock_;
  std::optional<RunLog> log_;
  Progressed at_;
  Progress progress_;
  double begin_ = 0, session_seconds_ = 0;
  i64 first_step_ = 0;
  i64 signal_ = 0;  // that any of several ranks caught before the last step
};

Run::Run(const TrainConfig& c, const Pretrained* first, const PretrainedClassifier* classifier, const TrainOptions& o,
         const RunRanks& ranks, int threads)
    : c_(c), first_(first), classifier_(classifier), o_(o), ranks_(ranks) {
  ranks.together(
      [&] { task_.emplace(c, first, classifier, o.threads > 0 ? o.threads : threads, o.device, o.checked, ranks); });
  facts_ = str_cat("model       ", c.model.kind, "\n", task_->known_beforehand());
  say(facts_);
  if (ranks.first()) print_notes(task_->trainer().program());
  if (o.plan) return;
  if (ranks.collectives()) ranks.check_same("the model", mark_of(task_->graph().str()));
  ranks.together([&] {
    if (ranks.first()) refuse_another_run();
    data_ = read_data();
  });
  const std::string summary = str_cat("data        ", data_->summary(), "\n");
  facts_ += summary;
  say(summary);
  if (ranks.collectives()) check_data();
  ranks.together([&] {
    if (ranks.first()) prepare_folder();
  });
  ranks.together([&] {
    if (!fs::exists(c.folder))
      throw Error("train", str_cat("there is no folder ", in_quotes(c.folder),
                                   " here, which rank 0 has made: all ranks "
                                   "write into one folder, of a file system that they share"));
    if (o.resume && fs::exists(checkpoint())) resume();
    else if (!c.model.weights.empty()) load_weights();
  });
  first_step_ = task_->trainer().steps();
  ranks.together([&] {
    if (ranks.first()) log_.emplace(c.folder, c.name, c.measure(), first_step_);
  });
}

std::unique_ptr<TrainingData> Run::read_data() const {
  if (classifier_) return classifier_->data();
  if (c_.data.format == "jsonl") return read_chats(c_, first_->tokenizer, find_chat_template(first_->weights));
  return c_.language() ? read_texts(c_, first_ ? first_->tokenizer : nullptr) : read_samples(c_);
}

// Ranks that read other files would learn from a batch that is none.
void Run::check_data() const {
  ranks_.check_same("the data", data_->summary());
  ranks_.check_same("the vocabulary", vocabulary_mark());
  ranks_.check_same("the held-out data", data_->held_out() > 0 ? mark_of(data_->held_out_batch(0)) : "none");
}

void Run::load_weights() { say(task_->load_weights()); }

void Run::refuse_another_run() const {
  if (!o_.resume && !o_.overwrite && fs::exists(checkpoint()))
    throw Error("train", str_cat(in_quotes(c_.folder),
                                 " holds a run already: --resume goes on with it, --overwrite begins "
                                 "anew, \"save\": {\"folder\": ...} or --output names another folder"));
  std::error_code wrong;
  if (o_.overwrite && fs::is_symlink(fs::path(c_.folder), wrong))
    throw Error("train", str_cat(in_quotes(c_.folder), " is a link to a folder, which --overwrite leaves alone: name ",
                                 "the folder itself, or remove the link"));
}

// Locks the folder, in which one run at a time works, and removes what an earlier run left, unless it is resumed. Links
// are removed and not followed, because their targets are no part of the run.
void Run::prepare_folder() {
  std::error_code wrong;
  fs::create_directories(c_.folder, wrong);
  if (wrong) throw Error("train", str_cat("cannot make the folder ", in_quotes(c_.folder), ": ", wrong.message()));
  lock_.emplace("train", c_.folder);
  refuse_another_run();  // another run may have begun and ended since
  for (const char* part : {"", "model", "adapter"}) io::remove_abandoned(path(part));
  if (o_.resume) return;
  io::remove_parts(path("run.safetensors"));
  for (const char* folder : {"model", "adapter"}) {
    if (fs::is_symlink(path(folder), wrong)) fs::remove(path(folder), wrong);
    for (fs::directory_iterator at(path(folder), wrong), end; !wrong && at != end; at.increment(wrong))
      if (std::error_code kept; at->is_symlink(kept)) fs::remove(at->path(), kept);
  }
  for (const char* name :
       {"run.safetensors", "best.safetensors", "model.gguf", "model/model.safetensors",
        "adapter/adapter_model.safetensors", "adapter/adapter_config.json", "log.jsonl", "log.csv", "loss.html"})
    if (fs::remove(path(name), wrong); wrong && wrong != std::errc::not_a_directory)
      throw Error("train", str_cat("cannot remove ", in_quotes(path(name)), ": ", wrong.message()));
}

// Hashes the vocabulary, to check that the same text gives the same one.
std::string Run::vocabulary_mark() const {
  if (!data_->tokenizer()) return "";
  std::uint64_t h = 14695981039346656037u;  // FNV-1a
  for (const std::string& p : data_->tokenizer()->vocabulary().pieces)
    for (const char c : p + '\n') h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return std::to_string(h);
}

void Run::resume() {
  const std::string file = checkpoint();
  const auto saved = Weights::open(file).metadata();
  const auto word = [&](const char* key) {
    const auto it = saved.find(key);
    if (it == saved.end())
      throw Error("train", str_cat(in_quotes(file), " is no run of this command: it has no '", key, "'"));
    return it->second;
  };
  std::string decisive;
  for (const std::string& d : c_.decisive) decisive += d + "\n";
  if (word("config") != decisive) {
    std::istringstream old(word("config"));
    std::string other = "a key is missing";
    for (std::string line; std::getline(old, line);)
      if (std::find(c_.decisive.begin(), c_.decisive.end(), line) == c_.decisive.end()) other = line;
    throw Error("train", str_cat("the run in ", in_quotes(c_.folder), " was begun with another configuration (",
                                 printable(other, 200), "): only steps, evaluate, save and log may change"));
  }
  if (word("vocabulary") != vocabulary_mark())
    throw Error("train", str_cat("the run in ", in_quotes(c_.folder),
                                 " was begun with another vocabulary: the text is not "
                                 "the one it learned from"));
  task_->trainer().load(path("run.safetensors"));
  const auto number = [&](const char* key) {
    const std::optional<double> v = real_of<double>(word(key));
    if (!v) throw Error("train", str_cat(in_quotes(file), " is no run of this command: its '", key, "' is no number"));
    return *v;
  };
  const auto count = [&](const char* key) {
    const double v = number(key);
    if (!(v >= 0 && v < 0x1p53))
      throw Error("train", str_cat(in_quotes(file), " is no run of this command: its '", key, "' is no count"));
    return static_cast<i64>(v);
  };
  at_ = {number("best"), count("best_step"), count("evaluations_since"),
         number("sum"),  count("summed"),    number("seconds")};
  say(str_cat("resumed     at step ", task_->trainer().steps(), "\n"));
}

void Run::save() {
  std::string decisive;
  for (const std::string& d : c_.decisive) decisive += d + "\n";
  at_.seconds = session_seconds_ + now() - begin_;
  task_->trainer().save(path("run.safetensors"), {{"config", decisive},
                                                  {"vocabulary", vocabulary_mark()},
                                                  {"best", exact(at_.best)},
                                                  {"best_step", std::to_string(at_.best_step)},
                                                  {"evaluations_since", std::to_string(at_.evaluations_since)},
                                                  {"sum", exact(at_.sum)},
                                                  {"summed", std::to_string(at_.summed)},
                                                  {"seconds", exact(at_.seconds)}});
  ranks_.together([&] {
    if (log_) log_->write_page(facts_);
  });
}

double Run::rate() const {
  const auto samples = static_cast<double>((task_->trainer().steps() - first_step_) * c_.train.batch);
  return samples * static_cast<double>(task_->rows_of_a_sample()) / std::max(1e-9, now() - begin_);
}

void Run::show_progress(float loss) {
  if (!ranks_.first()) return;
  const i64 step = task_->trainer().steps();
  const double each = (now() - begin_) / static_cast<double>(step - first_step_),
               left = each * static_cast<double>(c_.train.steps - step);
  const double part = static_cast<double>(step) / static_cast<double>(c_.train.steps);
  progress_.show(str_cat("step ", step, "/", c_.train.steps), part,
                 str_cat("loss ", shortened(static_cast<double>(loss)), "  ", shortened(rate()), " ", rate_unit(), "  ",
                         duration(left), " left"));
}

void Run::keep_best() {
  task_->trainer().on_rank_0([&] {
    const ModelDescription* what = data_->description();
    task_->trainer().save_parameters(path("best.safetensors"), what ? what->metadata() : decltype(what->metadata())());
    if (!c_.language() && !c_.published()) return;
    const DType type = c_.weights == "f32" ? DType::F32 : c_.weights == "f16" ? DType::F16 : DType::BF16;
    task_->save_adapters(path("adapter"));
    if (c_.published()) return task_->save_classifier(path("model"), type);
    task_->save_language_model(path(spoken_name()), data_->tokenizer()->vocabulary(), type, c_.name);
  });
}

void Run::evaluate(LogLine& line) {
  const i64 batch = c_.train.batch, n = data_->held_out();
  task_->begin_evaluation();
  for (i64 first = 0; first < n; first += batch) {
    task_->evaluate(data_->held_out_batch(first), std::min(batch, n - first));
    if (ranks_.first()) progress_.show("evaluating", static_cast<double>(first) / static_cast<double>(n), "");
  }
  const Measured m = task_->end_evaluation();
  line.held_out_loss = m.loss;
  line.measure = c_.language() ? std::exp(m.loss) : m.right;
  line.best = m.loss < at_.best;
  if (line.best) at_.best = m.loss, at_.best_step = line.step;
  at_.evaluations_since = line.best ? 0 : at_.evaluations_since + 1;
  progress_.clear();
  const std::string measured = c_.measure() == "accuracy" ? str_cat("accuracy ", shortened(100 * *line.measure), " %")
                                                          : str_cat(c_.measure(), " ", shortened(*line.measure));
  say(str_cat("step ", line.step, "/", c_.train.steps, "  held out: loss ", shortened(m.loss), ", ", measured,
              line.best ? "  (best so far)" : "", "\n"));
  if (line.best) keep_best();
}

// This rank's part of the next batch. All ranks go on to the step, or none does; and if one of them was told to stop,
// they stop after the same step.
Arrays Run::batch_of_all() {
  constexpr i64 kWrong = 1000;  // more than any signal
  Arrays batch;
  std::exception_ptr wrong;
  try {
    batch = data_->batch(task_->trainer().steps());
  } catch (const Error&) {
    wrong = std::current_exception();
  }
  signal_ = ranks_.largest(wrong ? kWrong : caught_signal());
  if (signal_ == kWrong)
    ranks_.together([&] {
      if (wrong) std::rethrow_exception(wrong);
    });
  return batch;
}

// Takes a step. If a step gives a number that is not finite, the parameters are spoilt, and only the last checkpoint
// helps.
float Run::checked_step() try {
  if (!ranks_.collectives()) return task_->step(data_->batch(task_->trainer().steps()));
  return task_->step(batch_of_all());
} catch (const Error& e) {
  const std::string what = e.what();
  if (o_.checked || what.find("the loss of step") == what.npos) throw;
  throw Error("train",
              str_cat(what.substr(0, what.find(';')),
                      ": a smaller train.lr, or train.clip, is what helps most "
                      "often; --resume --checked goes on from the last checkpoint and names the operation where it "
                      "comes from"));
}

void Run::one_step() {
  const i64 before = task_->trainer().steps();
  const float loss = checked_step();
  at_.sum += static_cast<double>(loss), ++at_.summed;
  const bool last = before + 1 == c_.train.steps, evaluates = last || due(c_.evaluate_every);
  show_progress(loss);
  if (!evaluates && !due(c_.log_every)) return;
  LogLine line;
  line.step = before + 1, line.loss = at_.sum / static_cast<double>(at_.summed);
  line.seconds = session_seconds_ + now() - begin_;
  line.rate = rate();
  at_.sum = 0, at_.summed = 0;
  if (!progress_.terminal())
    say(str_cat("step ", line.step, "/", c_.train.steps, "  loss ", shortened(*line.loss), "  ", shortened(line.rate),
                " ", rate_unit(), "  ", duration(line.seconds), "\n"));
  if (evaluates) evaluate(line);
  add_to_log(line);
}

void Run::add_to_log(const LogLine& line) {
  ranks_.together([&] {
    if (log_) log_->add(line);
  });
}

int Run::finished(const std::string& why) {
  progress_.clear();
  save();
  say(str_cat(why, " after ", task_->trainer().steps(), " steps and ", duration(at_.seconds), "; best held-out loss ",
              shortened(at_.best), " at step ", at_.best_step, "\nresults     ", printable(c_.folder, 500),
              c_.language()    ? str_cat(": ", spoken_name(), " (lightcone generate), ")
              : c_.published() ? ": model (lightcone predict, transformers), "
                               : ": ",
              task_->trainer().adapters().empty() ? "" : "adapter (LoRA's, for peft), ", "best.safetensors",
              data_->description() ? " (lightcone predict)" : "", ", run.safetensors",
              c_.ranks.mesh.size() > 1 ? ".index.json" : "", ", loss.html, log.jsonl, log.csv\n"));
  return 0;
}

int Run::go() {
  if (!data_) return 0;  // only the plan was requested
  catch_signals();       // a step in progress is finished, then the run is saved
  begin_ = now();
  session_seconds_ = at_.seconds;
  if ((first_ || c_.published()) &&
      task_->trainer().steps() == 0) {  // the loss before training, which may stay the best
    LogLine line;
    evaluate(line);
    add_to_log(line);
  }
  while (task_->trainer().steps() < c_.train.steps) {
    if (c_.patience > 0 && at_.evaluations_since >= c_.patience)
      return finished(str_cat("stopped early: no better for ", c_.patience, " evaluations,"));
    one_step();
    const i64 signal = ranks_.collectives() ? signal_ : caught_signal();
    if (signal == 0 && due(c_.save_every)) save();
    if (signal == 0) continue;
    progress_.clear();
    save();
    say(str_cat("stopped and saved after step ", task_->trainer().steps(), "; --resume goes on\n"));
    return 128 + static_cast<int>(signal);
  }
  return finished("done");
}

}  // namespace

int train(const TrainOptions& o) {
  if (!o.example.empty()) {
    write_stdout(example_config(o.example));
    return 0;
  }
  const auto read = [&] {
    TrainConfig c = o.config.empty() ? story_config() : read_train_config(o.config);
    if (!o.output.empty()) c.folder = o.output;
    return c;
  };
  return run_on_ranks(read, LIGHTCONE_VERSION, [&](TrainConfig& c, const RunRanks& ranks, int threads) {
    std::optional<Pretrained> first;
    std::unique_ptr<PretrainedClassifier> classifier;
    ranks.together([&] {
      first = Pretrained::of(c), classifier = PretrainedClassifier::of(c);
      check_mesh(c.model, c.ranks);
    });
    if (ranks.collectives() && first) ranks.check_same("the checkpoint", mark_of(first->weights));
    Run run(c, first ? &*first : nullptr, classifier.get(), o, ranks, threads);
    return run.go();
  });
}

}  // namespace lc::tool
