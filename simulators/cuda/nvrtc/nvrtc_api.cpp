// The NVRTC functions: programs, their options and their results.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "driver/driver.h"
#include "nvrtc/compiler.h"
#include "nvrtc/genuine.h"

using namespace lc::simulators::cuda;

namespace lc::simulators::cuda {
namespace {

constexpr int kArchitectures[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};

struct Program {
  Source source;
  Compiled compiled;
  std::string ptx;
  bool real_architecture = false;  // sm_90, not compute_90: also creates a cubin
};

struct Programs {
  std::mutex mutex;
  Handles<Program> live;
};

Programs& programs() {
  static Programs* const only = new Programs;
  return *only;
}

template <class Work>
int nvrtc_call(Work work) {
  if (const int injected = count_call(); injected != kSuccess) return injected;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return kNvrtcOutOfMemory;
  } catch (const std::exception&) {
    return kNvrtcInternalError;
  }
}

template <class Work>
int program_call(void* handle, Work work) {
  return nvrtc_call([&]() -> int {
    std::shared_ptr<Program> p;
    {
      const std::lock_guard lock(programs().mutex);
      p = programs().live.shared(handle);
    }
    return p == nullptr ? kNvrtcInvalidProgram : work(*p);
  });
}

// Stores the value of an option --name=value or -name=value.
bool value_of(std::string_view option, std::initializer_list<std::string_view> names, std::string& value) {
  for (const std::string_view name : names)
    if (option.starts_with(name) && option.substr(name.size()).starts_with("=")) {
      value = option.substr(name.size() + 1);
      return true;
    }
  return false;
}

// Parses names such as sm_90, sm_90a and compute_100f.
bool read_architecture(const std::string& value, Program& p) {
  p.real_architecture = value.starts_with("sm_");
  if (!p.real_architecture && !value.starts_with("compute_")) return false;
  std::string digits = value.substr(value.find('_') + 1);
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) digits.pop_back();
  for (const int a : kArchitectures)
    if (digits == std::to_string(a)) return p.source.compute_capability = a, true;
  return false;
}

// Returns true for options that have no effect here.
bool is_ignored(std::string_view option) {
  for (const std::string_view name :
       {"-fmad=", "--fmad=", "-ftz=", "--ftz=", "-prec-div=", "--prec-div=", "-prec-sqrt=", "--prec-sqrt=",
        "--ptxas-options=", "-Xptxas=", "--maxrregcount=", "-maxrregcount=", "--split-compile=", "--dopt=", "--diag-"})
    if (option.starts_with(name)) return true;
  for (const std::string_view name :
       {"-default-device", "--device-as-default-execution-space", "-lineinfo", "--generate-line-info", "-w",
        "--disable-warnings", "-restrict", "--restrict", "-G", "--device-debug", "--extra-device-vectorization",
        "--use_fast_math", "-use_fast_math", "--minimal", "-no-cache", "--no-cache", "--no-source-include"})
    if (option == name) return true;
  return false;
}

// Defines a macro given as NAME or NAME=VALUE.
void define(const std::string& macro, Program& p) {
  const std::size_t n = std::min(macro.find('='), macro.size());
  p.source.macros.emplace_back(macro.substr(0, n), n < macro.size() ? macro.substr(n + 1) : "1");
}

bool read_option(const std::string& option, Program& p) {
  std::string value;
  if (value_of(option, {"-arch", "--gpu-architecture"}, value)) return read_architecture(value, p);
  if (value_of(option, {"-std", "--std"}, value)) return p.source.flags.push_back("-std=" + value), true;
  if (value_of(option, {"--define-macro"}, value)) return define(value, p), true;
  if (value_of(option, {"--include-path"}, value)) return p.source.flags.push_back("-I" + value), true;
  if (option.starts_with("-D") && option.size() > 2) return define(option.substr(2), p), true;
  if (option.starts_with("-I") && option.size() > 2) return p.source.flags.push_back(option), true;
  return is_ignored(option);
}

int size_of(const std::string& s, std::size_t extra, std::size_t* out) {
  if (out == nullptr) return kNvrtcInvalidInput;
  *out = s.size() + extra;
  return kNvrtcSuccess;
}

int copy_out(const std::string& s, std::size_t extra, char* out) {
  if (out == nullptr) return kNvrtcInvalidInput;
  std::memcpy(out, s.c_str(), s.size() + extra);
  return kNvrtcSuccess;
}

}  // namespace

std::size_t live_programs() {
  const std::lock_guard lock(programs().mutex);
  return programs().live.size();
}

}  // namespace lc::simulators::cuda

FAKE_CUDA_API int nvrtcVersion(int* major, int* minor) {
  return nvrtc_call([&] {
    if (major == nullptr || minor == nullptr) return kNvrtcInvalidInput;
    *major = static_cast<int>(settings().nvrtc_version) / 1000;
    *minor = static_cast<int>(settings().nvrtc_version) % 1000 / 10;
    return kNvrtcSuccess;
  });
}

FAKE_CUDA_API int nvrtcGetNumSupportedArchs(int* count) {
  return nvrtc_call([&] {
    if (count == nullptr) return kNvrtcInvalidInput;
    *count = static_cast<int>(std::size(kArchitectures));
    return kNvrtcSuccess;
  });
}

FAKE_CUDA_API int nvrtcGetSupportedArchs(int* architectures) {
  return nvrtc_call([&] {
    if (architectures == nullptr) return kNvrtcInvalidInput;
    std::copy(std::begin(kArchitectures), std::end(kArchitectures), architectures);
    return kNvrtcSuccess;
  });
}

FAKE_CUDA_API int nvrtcCreateProgram(void** program, const char* text, const char* name, int header_count,
                                     const char* const* headers, const char* const* header_names) {
  return nvrtc_call([&] {
    if (program == nullptr || text == nullptr || header_count < 0) return kNvrtcInvalidInput;
    auto p = std::make_shared<Program>();
    p->source.text = text;
    p->source.name = name != nullptr && *name != 0 ? name : "default_program";
    for (int i = 0; i < header_count; ++i) p->source.headers.emplace_back(header_names[i], headers[i]);
    const std::lock_guard lock(programs().mutex);
    *program = programs().live.add(std::move(p));
    return kNvrtcSuccess;
  });
}

FAKE_CUDA_API int nvrtcDestroyProgram(void** program) {
  const int injected = count_call();
  if (program == nullptr) return kNvrtcInvalidProgram;
  const std::lock_guard lock(programs().mutex);
  const Code code = programs().live.remove(*program);
  *program = nullptr;
  return injected != kSuccess ? injected : code == kSuccess ? int(kNvrtcSuccess) : int(kNvrtcInvalidProgram);
}

FAKE_CUDA_API int nvrtcCompileProgram(void* program, int option_count, const char* const* options) {
  return program_call(program, [&](Program& p) -> int {
    p.source.flags.clear();
    p.source.macros.clear();
    p.compiled = {};
    for (int i = 0; i < option_count; ++i)
      if (!read_option(options[i], p)) {
        p.compiled.log = std::string("nvrtc: error: unrecognized option or value ") + options[i] + "\n";
        return kNvrtcInvalidOption;
      }
    p.compiled = compile(p.source);
    if (const std::string e = genuine_errors(p.source, {options, options + option_count}); !e.empty()) {
      p.compiled.right = false;
      p.compiled.log += e;
    }
    p.ptx = "// PTX of a fake NVRTC: no driver loads it\n";
    return p.compiled.right ? kNvrtcSuccess : kNvrtcCompilation;
  });
}

FAKE_CUDA_API int nvrtcGetCUBINSize(void* program, std::size_t* bytes) {
  return program_call(program,
                      [&](Program& p) { return size_of(p.real_architecture ? p.compiled.image : "", 0, bytes); });
}

FAKE_CUDA_API int nvrtcGetCUBIN(void* program, char* out) {
  return program_call(program, [&](Program& p) -> int {
    return p.real_architecture && p.compiled.right ? copy_out(p.compiled.image, 0, out) : kNvrtcInvalidProgram;
  });
}

FAKE_CUDA_API int nvrtcGetPTXSize(void* program, std::size_t* bytes) {
  return program_call(program, [&](Program& p) { return size_of(p.ptx, 1, bytes); });
}

FAKE_CUDA_API int nvrtcGetPTX(void* program, char* out) {
  return program_call(program, [&](Program& p) { return copy_out(p.ptx, 1, out); });
}

FAKE_CUDA_API int nvrtcGetProgramLogSize(void* program, std::size_t* bytes) {
  return program_call(program, [&](Program& p) { return size_of(p.compiled.log, 1, bytes); });
}

FAKE_CUDA_API int nvrtcGetProgramLog(void* program, char* out) {
  return program_call(program, [&](Program& p) { return copy_out(p.compiled.log, 1, out); });
}

FAKE_CUDA_API const char* nvrtcGetErrorString(int code) {
  switch (code) {
    case kNvrtcSuccess: return "NVRTC_SUCCESS";
    case kNvrtcOutOfMemory: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case 2: return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case kNvrtcInvalidInput: return "NVRTC_ERROR_INVALID_INPUT";
    case kNvrtcInvalidProgram: return "NVRTC_ERROR_INVALID_PROGRAM";
    case kNvrtcInvalidOption: return "NVRTC_ERROR_INVALID_OPTION";
    case kNvrtcCompilation: return "NVRTC_ERROR_COMPILATION";
    case 7: return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    case kNvrtcInternalError: return "NVRTC_ERROR_INTERNAL_ERROR";
    default: return "NVRTC_ERROR unknown";
  }
}
