#include "lightcone/backends/cpu/jit/llvm.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include "lightcone/backends/cpu/jit/elf_check.h"
#include "lightcone/backends/cpu/jit/identity.h"
#include "lightcone/backends/cpu/target/isa.h"
#include "lightcone/base/error.h"
#include "lightcone/cache/environment.h"
#include "lightcone/cache/object_cache.h"

namespace lc::backends::cpu {
namespace {

constexpr std::size_t kFunctionsPerModule = 6;
constexpr const char* kPasses = "default<O2>";

#if defined(__aarch64__)
#define LC_LLVM_TARGET "AArch64"
#else
#define LC_LLVM_TARGET "X86"
#endif

// The functions of LLVM's C interface that are used, unchanged since LLVM 13. Handles are pointers.
using Handle = void*;
struct Api {
  void (*InitializeTargetInfo)(), (*InitializeTarget)(), (*InitializeTargetMC)(), (*InitializeAsmPrinter)();
  Handle (*ContextCreate)();
  void (*ContextDispose)(Handle context);
  void (*ContextSetDiagnosticHandler)(Handle context, void (*handler)(Handle diagnostic, void* arg), void* arg);
  Handle (*CreateMemoryBufferWithMemoryRangeCopy)(const char* data, std::size_t size, const char* name);
  const char* (*GetBufferStart)(Handle buffer);
  std::size_t (*GetBufferSize)(Handle buffer);
  void (*DisposeMemoryBuffer)(Handle buffer);
  int (*ParseIRInContext)(Handle context, Handle buffer, Handle* module, char** message);
  int (*VerifyModule)(Handle module, int action, char** message);
  void (*DisposeModule)(Handle module);
  void (*DisposeMessage)(char* message);
  char* (*GetDefaultTargetTriple)();
  char* (*GetHostCPUName)();
  char* (*GetHostCPUFeatures)();
  int (*GetTargetFromTriple)(const char* triple, Handle* target, char** message);
  Handle (*CreateTargetMachine)(Handle target, const char* triple, const char* cpu, const char* features, int level,
                                int relocation, int code_model);
  void (*DisposeTargetMachine)(Handle machine);
  Handle (*CreateTargetDataLayout)(Handle machine);
  void (*DisposeTargetData)(Handle layout);
  void (*SetModuleDataLayout)(Handle module, Handle layout);
  void (*SetTarget)(Handle module, const char* triple);
  Handle (*CreatePassBuilderOptions)();
  void (*DisposePassBuilderOptions)(Handle options);
  Handle (*RunPasses)(Handle module, const char* passes, Handle machine, Handle options);
  char* (*GetErrorMessage)(Handle error);
  void (*DisposeErrorMessage)(char* message);
  int (*TargetMachineEmitToMemoryBuffer)(Handle machine, Handle module, int kind, char** message, Handle* buffer);
  Handle (*OrcCreateLLJITBuilder)();
  void (*OrcLLJITBuilderSetObjectLinkingLayerCreator)(Handle builder,
                                                      Handle (*create)(void* arg, Handle session, const char* triple),
                                                      void* arg);
  Handle (*OrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager)(Handle session);
  Handle (*OrcCreateLLJIT)(Handle* jit, Handle builder);
  Handle (*OrcDisposeLLJIT)(Handle jit);
  Handle (*OrcLLJITGetMainJITDylib)(Handle jit);
  Handle (*OrcLLJITGetExecutionSession)(Handle jit);
  char (*OrcLLJITGetGlobalPrefix)(Handle jit);
  void (*OrcExecutionSessionSetErrorReporter)(Handle session, void (*report)(void* arg, Handle error), void* arg);
  Handle (*OrcCreateDynamicLibrarySearchGeneratorForProcess)(Handle* generator, char prefix, Handle filter, void* arg);
  void (*OrcJITDylibAddGenerator)(Handle library, Handle generator);
  Handle (*OrcLLJITAddObjectFile)(Handle jit, Handle library, Handle buffer);
  Handle (*OrcLLJITLookup)(Handle jit, std::uint64_t* address, const char* name);
};

struct Library {
  LlvmFound found;
  Api api{};
  std::string triple, cpu, features;
  std::string identity;  // everything object code depends on besides its text; "" if unknown
};

// Fills the function table. Returns "" or the name of the first missing function.
std::string bind(void* handle, Api& a) {
  std::string missing;
  const auto get = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (!function && missing.empty()) missing = name;
  };
  get(a.InitializeTargetInfo, "LLVMInitialize" LC_LLVM_TARGET "TargetInfo");
  get(a.InitializeTarget, "LLVMInitialize" LC_LLVM_TARGET "Target");
  get(a.InitializeTargetMC, "LLVMInitialize" LC_LLVM_TARGET "TargetMC");
  get(a.InitializeAsmPrinter, "LLVMInitialize" LC_LLVM_TARGET "AsmPrinter");
#define LC_GET(name) get(a.name, "LLVM" #name)
  LC_GET(ContextCreate), LC_GET(ContextDispose), LC_GET(ContextSetDiagnosticHandler);
  LC_GET(CreateMemoryBufferWithMemoryRangeCopy), LC_GET(GetBufferStart), LC_GET(GetBufferSize);
  LC_GET(DisposeMemoryBuffer), LC_GET(ParseIRInContext), LC_GET(VerifyModule), LC_GET(DisposeModule);
  LC_GET(DisposeMessage), LC_GET(GetDefaultTargetTriple), LC_GET(GetHostCPUName), LC_GET(GetHostCPUFeatures);
  LC_GET(GetTargetFromTriple), LC_GET(CreateTargetMachine), LC_GET(DisposeTargetMachine);
  LC_GET(CreateTargetDataLayout), LC_GET(DisposeTargetData), LC_GET(SetModuleDataLayout), LC_GET(SetTarget);
  LC_GET(CreatePassBuilderOptions), LC_GET(DisposePassBuilderOptions), LC_GET(RunPasses), LC_GET(GetErrorMessage);
  LC_GET(DisposeErrorMessage), LC_GET(TargetMachineEmitToMemoryBuffer), LC_GET(OrcCreateLLJITBuilder);
  LC_GET(OrcLLJITBuilderSetObjectLinkingLayerCreator);
  LC_GET(OrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager), LC_GET(OrcCreateLLJIT);
  LC_GET(OrcDisposeLLJIT), LC_GET(OrcLLJITGetMainJITDylib), LC_GET(OrcLLJITGetExecutionSession);
  LC_GET(OrcLLJITGetGlobalPrefix), LC_GET(OrcExecutionSessionSetErrorReporter);
  LC_GET(OrcCreateDynamicLibrarySearchGeneratorForProcess), LC_GET(OrcJITDylibAddGenerator);
  LC_GET(OrcLLJITAddObjectFile), LC_GET(OrcLLJITLookup);
#undef LC_GET
  return missing;
}

std::string taken(const Api& a, char* message) {
  const std::string s = message ? message : "";
  if (message) a.DisposeMessage(message);
  return s;
}
void expect(const Api& a, Handle error) {
  if (!error) return;
  char* words = a.GetErrorMessage(error);
  const std::string s = words;
  a.DisposeErrorMessage(words);
  throw CompilerUnfit("jit", "LLVM: " + s.substr(0, 600));
}

// Owns an LLVM handle and disposes of it at the end of the scope.
struct Owned {
  Handle handle = nullptr;
  void (*dispose)(Handle) = nullptr;
  Owned(Handle h, void (*d)(Handle)) : handle(h), dispose(d) {}
  Owned(const Owned&) = delete;
  ~Owned() {
    if (handle) dispose(handle);
  }
};

// Parses a module and verifies it, because LLVM's later steps abort the process on malformed modules.
Handle parsed(const Api& a, Handle context, const std::string& text) {
  Handle module = nullptr;
  char* message = nullptr;
  const Handle buffer = a.CreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "kernels");
  if (a.ParseIRInContext(context, buffer, &module, &message))
    throw Error("jit", "LLVM does not read a kernel: " + taken(a, message).substr(0, 600));
  constexpr int kReturnStatus = 2;
  if (a.VerifyModule(module, kReturnStatus, &message)) {
    a.DisposeModule(module);
    throw Error("jit", "LLVM refuses a kernel: " + taken(a, message).substr(0, 600));
  }
  taken(a, message);
  return module;
}

// Processor name and feature string for LLVM.
struct Processor {
  std::string cpu, features;
};
Processor processor(const Library& l, Isa isa) {
#if defined(__x86_64__)
  if (isa > detect_isa()) return {isa == Isa::Avx512 ? "skylake-avx512" : "haswell", ""};  // cross-compilation
  Processor p{l.cpu, l.features};
  if (isa != Isa::Avx512) p.features += ",-avx512f";
  if (isa == Isa::Generic) p.features += ",-avx2,-fma";
  return p;
#else
  (void)isa;
  return {l.cpu, l.features};
#endif
}

std::string compiled(const Library& l, const Processor& p, const std::string& text) {
  const Api& a = l.api;
  const Owned context(a.ContextCreate(), a.ContextDispose);
  // An empty handler keeps diagnostics off the terminal.
  a.ContextSetDiagnosticHandler(
      context.handle, [](Handle, void*) {}, nullptr);
  const Owned module(parsed(a, context.handle, text), a.DisposeModule);
  Handle target = nullptr;
  char* message = nullptr;
  if (a.GetTargetFromTriple(l.triple.c_str(), &target, &message))
    throw CompilerUnfit("jit", "LLVM: " + taken(a, message));
  constexpr int kLevel = 2, kPic = 2, kDefaultModel = 0, kObject = 1;
  const Owned machine(
      a.CreateTargetMachine(target, l.triple.c_str(), p.cpu.c_str(), p.features.c_str(), kLevel, kPic, kDefaultModel),
      a.DisposeTargetMachine);
  const Owned layout(a.CreateTargetDataLayout(machine.handle), a.DisposeTargetData);
  a.SetModuleDataLayout(module.handle, layout.handle);
  a.SetTarget(module.handle, l.triple.c_str());
  const Owned options(a.CreatePassBuilderOptions(), a.DisposePassBuilderOptions);
  expect(a, a.RunPasses(module.handle, kPasses, machine.handle, options.handle));
  Handle buffer = nullptr;
  if (a.TargetMachineEmitToMemoryBuffer(machine.handle, module.handle, kObject, &message, &buffer))
    throw CompilerUnfit("jit", "LLVM: " + taken(a, message).substr(0, 600));
  const Owned object(buffer, a.DisposeMemoryBuffer);
  return {a.GetBufferStart(buffer), a.GetBufferSize(buffer)};
}

// Loads and checks a library; `found.problem` receives what is wrong with it.
std::unique_ptr<Library> open(const std::string& name) {
  auto l = std::make_unique<Library>();
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    l->found.problem = str_cat("LLVM's library cannot be loaded: ", ::dlerror());
    return l;
  }
  const Api& a = l->api;
  if (const std::string missing = bind(handle, l->api); !missing.empty()) {
    l->found.problem = name + " cannot be used: it lacks " + missing;
    return l;
  }
  a.InitializeTargetInfo(), a.InitializeTarget(), a.InitializeTargetMC(), a.InitializeAsmPrinter();
  l->triple = taken(a, a.GetDefaultTargetTriple());
  l->cpu = taken(a, a.GetHostCPUName());
  l->features = taken(a, a.GetHostCPUFeatures());
  Dl_info where{};
  l->found.path =
      ::dladdr(reinterpret_cast<void*>(a.ContextCreate), &where) && where.dli_fname ? where.dli_fname : name;
  l->identity = identity(l->found.path);
  l->found.typed_pointers = !::dlsym(handle, "LLVMPointerTypeInContext");  // added to LLVM with opaque pointers
#if defined(__x86_64__)
  // Without F16C, LLVM calls runtime functions for f16 that a process may lack.
  if (l->features.find("+f16c") == std::string::npos) {
    l->found.path.clear();
    l->found.problem = "kernels through LLVM need a processor with F16C";
  }
#endif
  return l;
}

// The requested library, or the newest with one of the usual names. Libraries stay loaded.
const Library& library(const JitOptions& o) {
  static std::mutex lock;
  static std::map<std::string, std::unique_ptr<Library>> known;
  const std::string wish = o.llvm.empty() ? env("LIGHTCONE_LLVM") : o.llvm;
  const std::lock_guard hold(lock);
  std::unique_ptr<Library>& kept = known[wish];
  if (kept) return *kept;
  if (!wish.empty()) {
    kept = open(wish);
    return *kept;
  }
  std::unique_ptr<Library> l;  // stored only after the search, which may throw
  std::vector<std::string> names;
  for (int version = 20; version >= 18; --version) names.push_back(str_cat("libLLVM.so.", version, ".1"));
  for (int version = 17; version >= 13; --version) names.push_back(str_cat("libLLVM-", version, ".so.1"));
  for (const char* name : {"libLLVM.so", "libLLVM.so.1"}) names.push_back(name);
  for (const std::string& name : names)
    if (l = open(name); !l->found.path.empty()) return *(kept = std::move(l));
  l->found.problem = "LLVM's library was not found; install libllvm14 or newer, or name its file in LIGHTCONE_LLVM";
  return *(kept = std::move(l));
}

// Joins several sources into one module. Declarations and metadata may occur only once in a module.
std::string joined(std::span<const Source* const> sources) {
  std::set<std::string> declarations;
  std::string functions;
  for (const Source* s : sources) {
    std::istringstream lines(s->text);
    lines.exceptions(std::ios_base::badbit);  // throw bad_alloc instead of truncating the text
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("declare ") || line.starts_with("!")) declarations.insert(line);
      else functions += line + "\n";
    }
  }
  std::string text;
  for (const std::string& d : declarations) text += d + "\n";
  return text + functions;
}

struct IrUnit {
  std::string text, key, object;
  bool cached = false;
  std::exception_ptr problem = nullptr;
};

void compile_all(const Library& l, const Processor& p, const std::vector<IrUnit*>& units) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t k; (k = next++) < units.size();) try {
        units[k]->object = compiled(l, p, units[k]->text);
      } catch (...) {
        units[k]->problem = std::current_exception();
      }
  };
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t k = 1; k < std::min(cores, units.size()); ++k) others.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads available: the running ones do all the work
    }
    work();
  }
  for (const IrUnit* u : units)
    if (u->problem) std::rethrow_exception(u->problem);
}

// Objects loaded into memory; functions are callable while `code` lives.
struct Loaded {
  std::shared_ptr<void> code;
  std::vector<KernelFunction> functions;  // in the order of the sources
};

// RuntimeDyld links the objects, in every version. JITLink, newer versions' choice, looks for its registration of
// unwind tables among the symbols of the process, where a library that is loaded for one user alone does not appear; if
// it were made visible, another version of LLVM in the process (PoCL's, a driver's) would call its functions.
Handle linking_jit(const Api& a) {
  const Handle builder = a.OrcCreateLLJITBuilder();
  a.OrcLLJITBuilderSetObjectLinkingLayerCreator(
      builder,
      [](void* api, Handle session, const char*) {
        return static_cast<Api*>(api)->OrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager(session);
      },
      const_cast<Api*>(&a));
  Handle jit = nullptr;
  expect(a, a.OrcCreateLLJIT(&jit, builder));  // disposes of the builder, too
  return jit;
}

Loaded loaded(const Api& a, const std::vector<IrUnit>& units, std::span<const Source> sources) {
  const Handle jit = linking_jit(a);
  Handle generator = nullptr;
  Loaded done{std::shared_ptr<void>(jit, a.OrcDisposeLLJIT), {}};
  // The error reporter drops LLVM's message about missing symbols, because the Error below reports it.
  a.OrcExecutionSessionSetErrorReporter(
      a.OrcLLJITGetExecutionSession(jit),
      [](void* api, Handle error) {
        const Api& a = *static_cast<const Api*>(api);
        a.DisposeErrorMessage(a.GetErrorMessage(error));
      },
      const_cast<Api*>(&a));
  const Handle main = a.OrcLLJITGetMainJITDylib(jit);
  expect(a, a.OrcCreateDynamicLibrarySearchGeneratorForProcess(&generator, a.OrcLLJITGetGlobalPrefix(jit), nullptr,
                                                               nullptr));
  a.OrcJITDylibAddGenerator(main, generator);
  for (const IrUnit& u : units)
    expect(a, a.OrcLLJITAddObjectFile(
                  jit, main, a.CreateMemoryBufferWithMemoryRangeCopy(u.object.data(), u.object.size(), u.key.c_str())));
  for (const Source& s : sources) {
    std::uint64_t address = 0;
    expect(a, a.OrcLLJITLookup(jit, &address, s.name.c_str()));
    done.functions.push_back(reinterpret_cast<KernelFunction>(address));
  }
  return done;
}

std::vector<IrUnit> ir_units_of(std::span<const Source> sources) {
  std::map<std::string_view, const Source*> distinct;
  for (const Source& s : sources) {
    const auto [it, fresh] = distinct.emplace(s.name, &s);
    check(fresh || s.text.empty() || it->second->text == s.text, "two kernels of one name");
  }
  std::vector<const Source*> unique;
  for (const auto& [name, s] : distinct) unique.push_back(s);
  std::vector<IrUnit> units;
  for (std::size_t k = 0; k < unique.size(); k += kFunctionsPerModule)
    units.push_back({joined(std::span(unique).subspan(k, std::min(kFunctionsPerModule, unique.size() - k))), "", ""});
  return units;
}

std::vector<IrUnit*> not_cached(std::vector<IrUnit>& units) {
  std::vector<IrUnit*> missing;
  for (IrUnit& u : units)
    if (!u.cached) missing.push_back(&u);
  return missing;
}

}  // namespace

LlvmFound find_llvm(const JitOptions& options) {
  LlvmFound found = library(options).found;
  found.avx512 = options.isa.value_or(detect_isa()) == Isa::Avx512;
  return found;
}

Jitted jit_llvm(std::span<const Source> sources, const JitOptions& options) {
  Jitted result;
  const Library& l = library(options);
  if (l.found.path.empty()) throw CompilerUnfit("jit", l.found.problem);
  const Api& a = l.api;
  const Processor p = processor(l, options.isa.value_or(detect_isa()));
  const std::string made_for = str_cat(l.identity, " ", p.cpu, " ", p.features, " ", kPasses);
  const cache::ObjectCache cache =
      l.identity.empty() ? cache::ObjectCache() : cache::ObjectCache({options.cache_dir, options.cache_size});
  std::vector<IrUnit> units = ir_units_of(sources);
  for (IrUnit& u : units) {
    u.key = cache.name({u.text, made_for}, ".o");
    u.object = cache.find(u.key);
    u.cached = whole_elf(u.object, ET_REL);
  }
  std::vector<IrUnit*> missing = not_cached(units);
  compile_all(l, p, missing);
  Loaded done;
  try {
    done = loaded(a, units, sources);
  } catch (const CompilerUnfit&) {
    if (missing.size() == units.size()) throw;
    // A cached object does not load: compile everything again, once.
    for (IrUnit& u : units) {
      if (u.cached) cache.drop(u.key);
      u.cached = false;
    }
    missing = not_cached(units);
    compile_all(l, p, missing);
    done = loaded(a, units, sources);
  }
  for (const IrUnit* u : missing) cache.keep(u->key, u->object);  // cached only after successful loading
  if (!missing.empty()) cache.trim();
  result.compiled = static_cast<int>(missing.size());
  result.cached = static_cast<int>(units.size() - missing.size());
  result.cache_problem = cache.problem();
  result.functions = std::move(done.functions);
  result.libraries.push_back(std::move(done.code));
  return result;
}

}  // namespace lc::backends::cpu
