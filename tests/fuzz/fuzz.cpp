// Checkpoints, tokenizers and templates that are valid except for false claims give a model or an Error, within their
// memory budget and in time.
//
//   fuzz [--count N] [--seed S] [--format NAME] [--case K] [--keep FOLDER]
//
// N files of each format (default: LIGHTCONE_FUZZ, or 6000). The same seed makes the same files; the default one is
// fixed, LIGHTCONE_FUZZ_SEED names another. One of eight files tells the truth and must load. --case runs the one file
// of that number. The files of a case that fails or crashes stay in a folder, which is named.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/text/chat_template.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/onnx/onnx.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "memory.h"
#include "mutator.h"
#include "processor_time.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
extern "C" void __sanitizer_set_death_callback(void (*)());
#else
#define SANITIZED 0
#endif

namespace fs = std::filesystem;
using namespace lc;

namespace {

constexpr double kSeconds = SANITIZED ? 20 : 2;  // processor seconds, for files of a few KB
constexpr std::size_t kSmall = 192u << 10;       // memory budget of every second case

struct Options {
  std::uint64_t count = 6000, seed = 20240101;
  std::string format, keep = (fs::temp_directory_path() / "lightcone-fuzz").string();
  std::int64_t only = -1;
};

// Thrown when a case fails. `dying` is the message that is printed if the process dies now.
struct Failure {
  std::string what;
};
char dying[600] = "";
void died() {
  if (::write(STDERR_FILENO, dying, std::strlen(dying)) < 0) return;
}
[[maybe_unused]] void on_signal(int number) {
  died();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

double cpu_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Throws Failure if `s` contains invalid UTF-8, control characters or bidirectional formatting, or is too long.
void expect_clean(const std::string& s) {
  if (s.size() > 2500) throw Failure{"an Error of " + std::to_string(s.size()) + " bytes"};
  for (std::size_t i = 0; i < s.size(); ++i) {
    const auto c = static_cast<unsigned char>(s[i]);
    const auto next = [&](std::size_t k) { return i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0; };
    const bool c1 = c == 0xC2 && next(1) < 0xA0, bidi = c == 0xE2 && (next(1) == 0x80 || next(1) == 0x81) &&
                                                        (next(2) >= 0xA6 || (next(2) >= 0x8B && next(2) <= 0x8F)) &&
                                                        !(next(1) == 0x80 && next(2) >= 0xB0);
    const std::size_t more = c < 0x80 ? 0 : c < 0xC2 ? 9 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : c < 0xF5 ? 3 : 9;
    bool valid = more < 9;
    for (std::size_t k = 1; valid && k <= more; ++k) valid = (next(k) & 0xC0) == 0x80;
    if (c < 32 || c == 127 || c1 || bidi || !valid)
      throw Failure{"an Error with a byte " + std::to_string(c) + " at " + std::to_string(i) + " of it"};
    i += more;
  }
}

class Case {
 public:
  Case(const fuzz::Format& f, const Options& o, std::uint64_t number) : format_(f) {
    const std::uint64_t seed = o.seed * 1000003 + number * 7919 + 17;
    fuzz::Mutator truth(seed);
    files_ = f.make(truth);
    std::mt19937_64 random(seed ^ 0x5eed);
    const std::size_t all = truth.places(), kind = random() % 8, lies = kind == 0 ? 0 : kind < 4 ? 1 : kind < 7 ? 2 : 4;
    std::vector<std::size_t> places;
    for (std::size_t k = 0; k < lies; ++k)  // every second time, the second false claim is near the first
      places.push_back(k == 1 && random() % 2 ? places[0] + 1 + random() % 8 : random() % all);
    honest_ = lies == 0;
    fuzz::Mutator liar(seed);
    liar.lie_at(places);
    if (lies) files_ = f.make(liar);
    folder_ = fs::path(o.keep) / (std::string(f.name) + "-" + std::to_string(o.seed) + "-" + std::to_string(number));
    options_.memory = number % 2 ? kSmall : 0;
    options_.map = number % 3 != 0;
    run_model_ = number % 4 == 0;
    std::snprintf(dying, sizeof dying,
                  "fuzz: the process died: --format %s --seed %llu --case %llu; its files: %.400s\n", f.name,
                  static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(number), folder_.c_str());
  }
  // Returns true if everything in the files loaded. Throws Failure, and then keeps the files.
  bool run() {
    fs::create_directories(folder_);
    for (const auto& [name, bytes] : files_.files)
      std::ofstream(folder_ / name, std::ios::binary) << bytes, size_ += bytes.size();
    const std::string path = (folder_ / (files_.files.size() > 1 ? "" : files_.files[0].first)).string();
    bool good = true;
    const double seconds = lc::test::least_seconds(kSeconds, [&] {
      good = true;
      if (format_.weights) good = guarded([&] { weights(path); }) && good;
      if (format_.tokenizer) good = guarded([&] { tokenizer(path); }) && good;
      if (format_.chat) good = guarded([&] { chat(path); }) && good;
      if (format_.onnx) good = guarded([&] { onnx(path); }) && good;
    });
    if (seconds > kSeconds) throw Failure{"it took " + std::to_string(seconds) + " seconds"};
    if (honest_ && options_.memory == 0 && !good) throw Failure{"a sound file was refused: " + refusal_};
    fs::remove_all(folder_);
    return good;
  }
  const fs::path& folder() const { return folder_; }

 private:
  template <class F>
  bool guarded(const F& f) {
    try {
      f();
      return true;
    } catch (const Error& e) {
      refusal_ = e.what();
      std::istringstream lines(refusal_);  // the reader of ONNX lists what is wrong, a line each
      for (std::string line; format_.onnx && std::getline(lines, line);) expect_clean(line);
      if (!format_.onnx) expect_clean(refusal_);
      return false;
    } catch (const std::exception& e) {
      throw Failure{std::string("an exception that is no Error: ") + e.what()};
    }
  }
  // Runs a reader and checks its peak memory.
  template <class F>
  auto reading(const F& f, std::size_t more = 0) {
    counted::reset_most();
    const std::size_t before = counted::live();
    const auto check = [&] {
      // allowed in addition to the budget: the copy of a file that is not mapped, buffers, the message of an Error
      const std::size_t budget = options_.memory ? options_.memory : Budget::kFloor + Budget::kEachByte * 2 * size_,
                        most = counted::most() - std::min(before, counted::most());
      if (most > budget + more + 2 * size_ + (64u << 10))
        throw Failure{"it took " + std::to_string(most) + " bytes of memory, the budget is " + std::to_string(budget)};
    };
    try {
      auto r = f();
      check();
      return r;
    } catch (const Error&) {
      check();
      throw;
    }
  }
  void weights(const std::string& path) {
    const Weights w = reading([&] { return Weights::open(path, options_); });
    for (const auto& [name, t] : w.tensors())
      if (t.elements() <= 1 << 16) guarded([&] { Weights::read(t); });
    if (w.gguf())
      for (const auto& [key, value] : w.gguf()->metadata) expect_clean(str(value));
    guarded([&] {
      const ChatTemplateSource t = reading([&] { return find_chat_template(w); });
      if (!t.text.empty()) ChatTemplate(t).apply({});
    });
    const LlamaConfig c = reading([&] { return LlamaConfig::from(w); });
    if (!run_model_ || c.layers > 4 || c.context > 1 << 12) return;
    const Llama m = Llama::load(w, {.context = 8, .chunk = 4, .compiler = Compiler(), .memory_limit = 64u << 20});
    LlamaSession(m).feed(static_cast<int>(c.vocab) - 1);
  }
  void tokenizer(const std::string& path) {
    if (path.ends_with(".gguf") && !options_.memory) {  // a model may lack a tokenizer
      const GgufFile g = read_gguf(path);
      if (!g.metadata.contains("tokenizer.ggml.tokens")) return;
    }
    const auto t = reading([&] { return load_tokenizer(path, 0, options_); });
    for (const char* text : {"ab ab abc 123", "<|endoftext|>a<x>b</s>", "\xC3\xA9 a\n\tb  'll \xE4\xBD\xA0"})
      for (bool control : {false, true}) guarded([&] { t->decode(t->encode(text, true, control)); });
    guarded([&] { t->encode(std::string(300, 'a') + "b", false); });
    guarded([&] {
      const Encoding e = t->encode_pair("ab a", "b <x>a");
      if (e.type_ids.size() != e.ids.size() || e.attention_mask.size() != e.ids.size())
        throw Failure{"an encoding with lists of unequal lengths"};
    });
    for (int id = -1; id < std::min(t->size() + 2, 100); ++id) t->piece(id), t->is_end(id);
  }

  // The graph is no part of the reader's account.
  void onnx(const std::string& path) {
    constexpr std::size_t kGraph = 32u << 20;
    reading([&] { return describe_onnx(path, options_); });
    const OnnxProgram m = reading([&] { return read_onnx(path, {.read = options_}); }, kGraph);
    if (!run_model_) return;
    Program p = compile(m.graph, generic() | cpu({.threads = 1, .compiler = false}));
    m.load_weights(p);
  }

  // A template may create 16 MB of values plus 256 times the size of its input; growing texts take twice their size.
  void chat(const std::string& path) {
    counted::reset_most();
    const std::size_t before = counted::live(), most_allowed = (40u << 20) + 1024 * size_;
    const auto check = [&] {
      if (const std::size_t most = counted::most(); most > before + most_allowed)
        throw Failure{"it took " + std::to_string(most - before) + " bytes of memory"};
    };
    try {
      const std::vector<ChatMessage> messages{{"system", "be brief"}, {"user", "a \xC3\xA4"}, {"assistant", "b<|x|>"}};
      ChatTemplate(read_chat_template(path)).apply(messages, {.variables = R"({"bos": "<s>"})", .now = 0});
      check();
    } catch (const Error&) {
      check();
      throw;
    }
  }

  const fuzz::Format& format_;
  fuzz::Files files_;
  bool honest_ = false, run_model_ = false;
  fs::path folder_;
  ReadOptions options_;
  std::size_t size_ = 0;
  std::string refusal_;
};

std::uint64_t number(const char* s) {
  std::uint64_t n = 0;
  const char* end = s + std::strlen(s);
  if (const auto [at, error] = std::from_chars(s, end, n); error != std::errc() || at != end) {
    std::fprintf(stderr, "fuzz: '%s' is not a whole number\n", s);
    std::exit(2);
  }
  return n;
}

Options options(int argc, char** argv) {
  Options o;
  if (const char* n = std::getenv("LIGHTCONE_FUZZ"); n && *n) o.count = number(n);
  if (const char* s = std::getenv("LIGHTCONE_FUZZ_SEED"); s && *s) o.seed = number(s);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string a = argv[i];
    if (a == "--count") o.count = number(argv[i + 1]);
    if (a == "--seed") o.seed = number(argv[i + 1]);
    if (a == "--format") o.format = argv[i + 1];
    if (a == "--case") o.only = static_cast<std::int64_t>(number(argv[i + 1]));
    if (a == "--keep") o.keep = argv[i + 1];
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = options(argc, argv);
  std::printf("fuzz: %llu files of each format, seed %llu\n", static_cast<unsigned long long>(o.count),
              static_cast<unsigned long long>(o.seed));
#if SANITIZED
  __sanitizer_set_death_callback(died);
#else
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(s, on_signal);
#endif
  int failed = 0;
  for (const fuzz::Format& f : fuzz::kFormats) {
    if (!o.format.empty() && o.format != f.name) continue;
    std::uint64_t done = 0, loaded = 0;
    const double begin = cpu_seconds();
    const std::uint64_t first = o.only >= 0 ? static_cast<std::uint64_t>(o.only) : 0,
                        end = o.only >= 0 ? first + 1 : o.count;
    for (std::uint64_t k = first; k < end && failed < 20; ++k, ++done) {
      Case c(f, o, k);
      try {
        loaded += c.run();
      } catch (const Failure& why) {
        ++failed;
        std::fprintf(stderr, "fuzz: --format %s --seed %llu --case %llu: %.1000s\n  its files: %s\n", f.name,
                     static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(k), why.what.c_str(),
                     c.folder().c_str());
      }
    }
    std::printf("%-18s %7llu files, %7llu loaded, %6.1f s\n", f.name, static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(loaded), cpu_seconds() - begin);
    std::fflush(stdout);
    // otherwise either all false claims are rejected at once or none is made
    if (o.only < 0 && done >= 100 && (loaded * 20 < done || loaded == done)) {
      std::fprintf(stderr, "fuzz: %s: %llu of %llu files loaded: the lies no longer reach the readers\n", f.name,
                   static_cast<unsigned long long>(loaded), static_cast<unsigned long long>(done));
      ++failed;
    }
  }
  std::error_code ec;
  fs::remove(o.keep, ec);  // removes the folder if it is empty
  return failed ? 1 : 0;
}
