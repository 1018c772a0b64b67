// Compiles text with the driver's compiler.
#include <algorithm>
#include <utility>

#include "lightcone/backends/opencl/device.h"
#include "lightcone/backends/opencl/error.h"

namespace lc::backends::opencl {
namespace {

constexpr std::size_t kLogLines = 20, kLogBytes = 2000;  // limits of the compiler's message in an Error

std::string first_lines(std::string log) {
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n' || log.back() == ' ')) log.pop_back();
  std::size_t end = 0;
  for (std::size_t line = 0; line < kLogLines && end < log.size(); ++line)
    end = std::min(log.find('\n', end), log.size() - 1) + 1;
  if (end = std::min(end, kLogBytes); end < log.size()) log.resize(end), log += "...";
  return log.empty() ? "its compiler does not say why" : log;
}

std::string build_log(const Session& s, api::Program* program) {
  const auto ask = [&](std::size_t room, void* to, std::size_t* size) {
    return s.functions().GetProgramBuildInfo(program, s.found.device, api::kBuildLog, room, to, size);
  };
  std::size_t size = 0;
  if (ask(0, nullptr, &size) != api::kSuccess) return "";
  std::string log(size, '\0');
  if (size && ask(size, log.data(), nullptr) != api::kSuccess) return "";
  return log;
}

}  // namespace

OpenClCode::OpenClCode(std::shared_ptr<Session> session, const std::string& text,
                       const std::vector<std::string>& kernels)
    : session_(std::move(session)) {
  try {
    make(text);
    for (const std::string& k : kernels) find(k);
  } catch (...) {
    release();
    throw;
  }
}
OpenClCode::~OpenClCode() { release(); }

void OpenClCode::release() {  // the driver keeps what still runs
  const api::Functions& f = session_->functions();
  for (const Function& function : functions_)
    if (function.kernel) f.ReleaseKernel(function.kernel);
  if (program_) f.ReleaseProgram(program_);
}

void OpenClCode::make(const std::string& text) {
  // Numbers follow IEEE 754 if the device can: no option ever allows less.
  std::string options = "-cl-std=CL1.2";
  if (session_->found.info.correctly_rounded) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (!session_->found.info.optimised) options += " -cl-opt-disable";
  const gpu::Limits& l = session_->found.info.limits;
  const std::string name = session_->cache.name({text, options, l.architecture, l.driver}, ".clbin");
  if (const std::string kept = session_->cache.find(name); !kept.empty()) {
    if (load(kept, options.c_str())) return;
    session_->cache.drop(name);  // intact, and yet of no use: a driver may change and keep its version
  }
  build(text, options.c_str());
  if (!session_->cache) return;
  if (const std::string made = binary(); !made.empty()) {
    session_->cache.keep(name, made);
    session_->cache.trim();
  }
}

bool OpenClCode::load(const std::string& binary, const char* options) {
  const api::Functions& f = session_->functions();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  api::Int taken = api::kSuccess, code = api::kSuccess;
  api::Device* const* const device = &session_->found.device;
  program_ = f.CreateProgramWithBinary(session_->context, 1, device, &size, &data, &taken, &code);
  if (!program_) return false;
  if (code == api::kSuccess && taken == api::kSuccess &&
      f.BuildProgram(program_, 1, device, options, nullptr, nullptr) == api::kSuccess)
    return true;
  f.ReleaseProgram(std::exchange(program_, nullptr));
  return false;
}

// Returns "" if the driver does not provide it.
std::string OpenClCode::binary() const {
  const api::Functions& f = session_->functions();
  std::size_t size = 0;
  if (f.GetProgramInfo(program_, api::kBinarySizes, sizeof size, &size, nullptr) != api::kSuccess) return "";
  std::string all(size, '\0');
  char* to = all.data();
  if (f.GetProgramInfo(program_, api::kBinaries, sizeof to, &to, nullptr) != api::kSuccess) return "";
  return all;
}

void OpenClCode::build(const std::string& text, const char* options) {
  const api::Functions& f = session_->functions();
  const char* const data = text.data();
  const std::size_t size = text.size();
  api::Int code = api::kSuccess;
  program_ = f.CreateProgramWithSource(session_->context, 1, &data, &size, &code);
  take(code, session_->name(), "take the text of a program");
  code = f.BuildProgram(program_, 1, &session_->found.device, options, nullptr, nullptr);
  if (code == api::kBuildFailure)
    throw Error("opencl", str_cat(session_->name(), " cannot compile a program: ", code_name(code), "\n",
                                  first_lines(build_log(*session_, program_))));
  take(code, session_->name(), "compile a program");
}

void OpenClCode::find(const std::string& kernel) {
  const api::Functions& f = session_->functions();
  Function& function = functions_.emplace_back();
  function.name = kernel;
  api::Int code = api::kSuccess;
  function.kernel = f.CreateKernel(program_, kernel.c_str(), &code);
  if (code == api::kInvalidKernelName)
    throw Error("opencl", str_cat("the text has no kernel '", kernel, "': ", code_name(code)));
  take(code, session_->name(), str_cat("make the kernel '", kernel, "'"));
  api::UInt arguments = 0;
  take(f.GetKernelInfo(function.kernel, api::kArguments, sizeof arguments, &arguments, nullptr), session_->name(),
       str_cat("count the arguments of '", kernel, "'"));
  function.arguments = arguments;
  take(f.GetKernelWorkGroupInfo(function.kernel, session_->found.device, api::kKernelGroupSize, sizeof function.threads,
                                &function.threads, nullptr),
       session_->name(), str_cat("say how large groups of '", kernel, "' may be"));
}

}  // namespace lc::backends::opencl
