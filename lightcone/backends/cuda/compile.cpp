#include "lightcone/backends/cuda/compile.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::backends::cuda {
namespace {

constexpr std::size_t kLines = 12, kCharacters = 2000;  // limits of the compiler's message in an Error

std::string join(const std::vector<std::string>& names) {
  std::string s;
  for (const std::string& n : names) s += str_cat(s.empty() ? "'" : ", '", n, "'");
  return names.size() == 1 ? "the kernel " + s : "the kernels " + s;
}

// Returns the lines from the first error on: warnings may come before it.
std::string first_lines(const std::string& log) {
  const std::size_t error = log.find("error"), line = error == std::string::npos ? 0 : log.rfind('\n', error) + 1;
  std::size_t end = line;
  for (std::size_t k = 0; k < kLines && end < log.size(); ++k) end = std::min(log.find('\n', end), log.size() - 1) + 1;
  std::string s = log.substr(line, std::min(end - line, kCharacters));
  while (!s.empty() && (s.back() == '\n' || s.back() == ' ' || s.back() == '\0')) s.pop_back();
  return s.empty() ? "it does not say why" : s;
}

// Owns a program of NVRTC.
class Program {
 public:
  Program(const Compiler& compiler, const std::string& text) : api_(compiler.api()) {
    if (const auto r = api_.create(&program_, text.c_str(), "kernels.cu", 0, nullptr, nullptr);
        r != api::CompilerResult::Success)
      throw Error("cuda", str_cat("NVRTC does not take a text of ", text.size(), " bytes: ", words(r)));
  }
  ~Program() { api_.destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  api::CompilerResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> all;
    for (const std::string& o : options) all.push_back(o.c_str());
    return api_.compile(program_, static_cast<int>(all.size()), all.data());
  }
  std::string log() const {
    std::size_t bytes = 0;
    if (api_.log_size(program_, &bytes) != api::CompilerResult::Success || bytes == 0) return "";
    std::string s(bytes, '\0');
    if (api_.log(program_, s.data()) != api::CompilerResult::Success) return "";
    s.pop_back();  // the terminating zero
    return s;
  }
  std::string code() const {
    std::size_t bytes = 0;
    api::CompilerResult r = api_.cubin_size(program_, &bytes);
    std::string s(r == api::CompilerResult::Success ? bytes : 0, '\0');
    if (!s.empty()) r = api_.cubin(program_, s.data());
    if (s.empty() || r != api::CompilerResult::Success)
      throw Error("cuda", str_cat("NVRTC gives no code for what it compiled: ", words(r)));
    return s;
  }
  static std::string words(api::CompilerResult r) {
    using api::CompilerResult;
    if (r == CompilerResult::OutOfMemory) return "out of memory";
    if (r == CompilerResult::InvalidOption) return "it does not know an option";
    if (r == CompilerResult::BuiltinFailure)
      return "its library libnvrtc-builtins.so was not found: it belongs beside libnvrtc.so";
    return str_cat("its error ", static_cast<int>(r));
  }

 private:
  const api::Compiler& api_;
  api::Program* program_ = nullptr;
};

std::vector<std::string> options_for(const std::string& architecture) {
  return {"--gpu-architecture=" + architecture, "--std=c++17", "--fmad=false"};
}

// Returns true if this kernel's definition begins with LC_BEGIN, as codegen::simt::begin_kernel() writes it.
bool waits_itself(const std::string& text, const std::string& kernel) {
  const std::size_t at = text.find(" " + kernel + "("), body = at == std::string::npos ? at : text.find("{\n", at);
  constexpr std::string_view kBegin = "  LC_BEGIN\n";
  return body != std::string::npos && text.compare(body + 2, kBegin.size(), kBegin) == 0;
}

}  // namespace

std::string architecture_for(const Compiler& compiler, int major, int minor) {
  const std::vector<int>& known = compiler.architectures();
  const int wanted = major * 10 + minor;
  // From sm_90 on there are instructions of one architecture alone, which the letter "a" enables.
  const bool letter = wanted >= 100 || (wanted == 90 && compiler.version() >= 12000);
  if (std::find(known.begin(), known.end(), wanted) != known.end()) return str_cat("sm_", wanted, letter ? "a" : "");
  const auto above = std::upper_bound(known.begin(), known.end(), wanted);
  if (above != known.begin() && *(above - 1) / 10 == major) return str_cat("sm_", *(above - 1));
  throw Error("cuda",
              str_cat("NVRTC ", version_text(compiler.version()), " compiles for no device of compute capability ",
                      major, ".", minor, ": take ", above == known.begin() ? "an older" : "a newer",
                      " version, and name its libnvrtc.so in LIGHTCONE_NVRTC"));
}

Cubin compile_cubin(const Compiler& compiler, const std::string& text, const std::vector<std::string>& kernels,
                    const std::string& architecture, std::span<const std::string> more) {
  std::vector<std::string> options = options_for(architecture);
  options.insert(options.end(), more.begin(), more.end());
  Program program(compiler, text);
  const api::CompilerResult r = program.compile(options);
  Cubin c{"", program.log()};
  if (r == api::CompilerResult::Compilation)
    throw Error("cuda", str_cat(join(kernels), kernels.size() == 1 ? " does" : " do", " not compile for ", architecture,
                                ": ", first_lines(c.log)));
  if (r != api::CompilerResult::Success)
    throw Error("cuda", str_cat("NVRTC ", version_text(compiler.version()), " cannot compile ", join(kernels), " for ",
                                architecture, ": ", Program::words(r), c.log.empty() ? "" : "; " + first_lines(c.log)));
  c.code = program.code();
  return c;
}

// ---- loaded -----------------------------------------------------------------------------------

std::shared_ptr<const Module> Module::make(std::shared_ptr<Stream> stream, const Compiler& compiler,
                                           const cache::ObjectCache& cache, const std::string& architecture,
                                           std::size_t shared, const std::string& given,
                                           const std::vector<std::string>& kernels, bool overlap) {
  const std::string text = overlap ? "#define LC_OVERLAP 1\n" + given : given;
  std::string made_by = compiler.identity();
  for (const std::string& o : options_for(architecture)) made_by += " " + o;
  const std::shared_ptr<Module> m(new Module(std::move(stream)));
  for (const std::string& k : kernels) m->overlaps_.push_back(overlap && waits_itself(text, k));
  const std::string name = cache.name({text, made_by}, ".cubin");
  if (const std::string kept = cache.find(name); !kept.empty()) {
    if (m->load(kept)) {
      m->find(kernels, shared);
      return m;
    }
    cache.drop(name);  // intact, and yet of no use: another driver made it
  }
  const Cubin c = compile_cubin(compiler, text, kernels, architecture);
  if (!m->load(c.code))
    throw Error("cuda", str_cat("the driver does not load what NVRTC ", version_text(compiler.version()), " made for ",
                                architecture, ": the driver is for CUDA ",
                                version_text(m->stream_->context().driver().version()),
                                "; name a libnvrtc.so of that version or an older one in LIGHTCONE_NVRTC"));
  m->find(kernels, shared);
  cache.keep(name, c.code);  // only after it was loaded
  cache.trim();
  return m;
}

bool Module::load(const std::string& image) {
  const Context& c = stream_->context();
  c.enter();
  const api::Result r = c.api().load_module(&module_, image.data());
  if (r == api::Result::InvalidImage || r == api::Result::NoBinaryForGpu || r == api::Result::InvalidSource ||
      r == api::Result::UnsupportedPtxVersion)
    return false;
  c.check(r, "load compiled code");
  return true;
}

void Module::find(const std::vector<std::string>& kernels, std::size_t shared) {
  const Context& c = stream_->context();
  for (const std::string& name : kernels) {
    api::Function* f = nullptr;
    const api::Result r = c.api().function(&f, module_, name.c_str());
    if (r == api::Result::NotFound)
      throw Error("cuda", str_cat("the text has no kernel '", name, "': declare it extern \"C\" __global__"));
    c.check(r, "find a kernel in compiled code");
    int own = 0;
    c.check(c.api().function_attribute(&own, api::FunctionAttribute::SharedSizeBytes, f), "describe a kernel");
    const int most = static_cast<int>(shared) - own;
    if (most > 0)  // more than 48 KB must be requested for each kernel
      c.check(c.api().set_function_attribute(f, api::FunctionAttribute::MaxDynamicSharedSizeBytes, most),
              "give a kernel shared memory");
    functions_.push_back(f);
  }
}

Module::~Module() {
  if (!module_) return;
  stream_->wait_quietly();  // a kernel of it may be running
  stream_->context().quietly([&](const api::Driver& a) { return a.unload_module(module_); });
}

}  // namespace lc::backends::cuda
