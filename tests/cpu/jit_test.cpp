// The C compiler's processes survive signals, closed streams, programs that are no compilers and damaged objects in the
// cache. A compiler that does not work is replaced, and the program says so.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include <set>

#include "compiled.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/jit/llvm.h"
#include "lightcone/codegen/kernel_names.h"
#include "lightcone/core/tensor.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

using namespace lc;
using backends::cpu::JitOptions;

namespace {

const std::string kMissing = "/nonexistent/libLLVM.so";

// RAII: delivers a signal a thousand times a second to a handler that interrupts system calls.
struct Interruptions {
  struct sigaction before {};
  Interruptions() {
    struct sigaction a {};
    a.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &a, &before);
    every(1000);
  }
  ~Interruptions() {
    every(0);
    ::sigaction(SIGALRM, &before, nullptr);
  }
  static void every(long microseconds) {
    const itimerval t{{0, microseconds}, {0, microseconds}};
    ::setitimer(ITIMER_REAL, &t, nullptr);
  }
};

// Returns a compiler that works only if SIGCHLD is not ignored, as clang does, which waits for children of its own.
std::string strict_compiler(const TempDir& dir, const std::string& real) {
  const std::string path = dir / "strict";
  spit(path + ".c",
       str_cat("#include <signal.h>\n#include <unistd.h>\n"
               "int main(int n, char** v) { return signal(SIGCHLD, SIG_DFL) == SIG_IGN ? n : execv(*v = \"",
               real, "\", v); }\n"));
  EXPECT_EQ(std::system(str_cat(real, " -o ", path, " ", path, ".c").c_str()), 0);
  return path;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The outcome of a graph of generated kernels that is compiled with the compiler found on PATH, and run.
struct Outcome {
  std::vector<std::string> notes;
  std::map<std::string, int> fired;
  std::string profile;
};
Outcome compiled_graph(const std::string& path, const std::string& llvm) {
  const Setting at("PATH", path.c_str()), wish("LIGHTCONE_CC", nullptr), library("LIGHTCONE_LLVM", llvm.c_str());
  Graph g;
  g.output("y", prim::exp2(g.input("x", {3})));
  const Program p = compile(g, cpu({.threads = 1, .jit = {.cache_dir = "off"}}));
  Context c(p);
  c.profile(true);
  c.set("x", std::vector<float>{0, 1, 3}).run();
  EXPECT_EQ(c.get("y"), (std::vector<float>{1, 2, 8}));
  std::map<std::string, int> fired;
  for (const PassLog& l : p.log()) fired.insert(l.fired.begin(), l.fired.end());
  return {p.notes(), fired, c.profile().table({})};
}

}  // namespace

TEST(Jit, SignalsDoNotDisturbIt) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  const JitOptions o{.cache_dir = dir / "cache"};
  {
    const Interruptions on;
    for (int k = 2; k < 5; ++k) EXPECT_EQ(built(k, o), kCompiled);
  }
  for (int k = 2; k < 5; ++k) EXPECT_EQ(built(k, o), kFromCache);
}

// A program may ignore SIGCHLD; then no exit status of a child is available.
TEST(Jit, ChildrenMayBeWaitedForByTheSystem) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  const std::string real = backends::cpu::find_compiler(), strict = strict_compiler(dir, real);
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, &before);
  const std::string half = script(dir / "cc", "printf '\\177ELF' >&3; exit 1");
  EXPECT_EQ(built(2, {.compiler = strict, .cache_dir = "off"}), kCompiled);
  EXPECT_EQ(built(2, {.cache_dir = "off"}), kCompiled);
  EXPECT_TRUE(contains(words([&] { built(2, {.compiler = half, .cache_dir = "off"}); }), "no whole shared object"));
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST(Jit, AnObjectIsKeptOnlyWhenItWasLoaded) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  const std::string cc = script(dir / "cc", str_cat("if mkdir ", dir / "once", " 2>&-; then echo torn >&3; else exec ",
                                                    backends::cpu::find_compiler(), " \"$@\"; fi"));
  const JitOptions o{.compiler = cc, .cache_dir = dir / "cache"};
  EXPECT_THROW(built(2, o), Error);
  EXPECT_EQ(files_in(dir / "cache").size(), 0u);
  EXPECT_EQ(built(2, o), kCompiled);
  EXPECT_EQ(built(2, o), kFromCache);
}

// A cached object may depend on a library that a system upgrade has removed.
TEST(Jit, AKeptObjectThatCannotBeLoadedIsCompiledAgain) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  const std::string real = backends::cpu::find_compiler(), gone = dir / "libgone.so";
  ASSERT_EQ(std::system(str_cat("echo 'int gone;' | ", real, " -x c -shared -fPIC -o ", gone, " -").c_str()), 0);
  const std::string cc = script(dir / "cc", str_cat("[ -e ", gone, " ] && set -- \"$@\" -x none -Wl,--no-as-needed ",
                                                    gone, "\nexec ", real, " \"$@\""));
  const JitOptions o{.compiler = cc, .cache_dir = dir / "cache"};
  EXPECT_EQ(built(2, o), kCompiled);
  EXPECT_EQ(built(2, o), kFromCache);
  std::filesystem::remove(gone);
  EXPECT_EQ(built(2, o), kCompiled);
  EXPECT_EQ(built(2, o), kFromCache);
}

// The disk cache handles entries that are valid, damaged, or in a folder that others may write to.
TEST(Jit, TheCacheIsCheckedBeforeItIsLoaded) {
  const TempDir dir;
  const std::vector<backends::cpu::Source> sources = {
      {"twice",
       "void twice(const void* const* in, void* out, const long* n, long begin, long end) {"
       " for (long i = begin; i < end; ++i) ((float*)out)[i] = 2 * ((const float*)in[0])[i]; }\n"}};
  const auto build = [&](const std::string& folder) {
    backends::cpu::Jitted j = backends::cpu::jit(sources, {.cache_dir = folder});
    const float x[2] = {1, 3};
    float y[2] = {};
    const void* in[] = {x};
    j.functions[0](in, y, nullptr, 0, 2);
    EXPECT_EQ(y[0], 2);
    EXPECT_EQ(y[1], 6);
    return std::pair(j.compiled, j.cached);
  };
  const std::string folder = dir / "cache";
  EXPECT_EQ(build(folder), std::pair(1, 0));
  EXPECT_EQ(build(folder), std::pair(0, 1));
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
  ASSERT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  const std::string entry = std::filesystem::directory_iterator(folder)->path().string(), good = slurp(entry);
  std::string changed = good, cut = good.substr(0, good.size() / 2);
  changed[good.size() / 2] ^= 1;
  for (const std::string& bad : {changed, cut, std::string(), std::string(100, 'x')}) {
    spit(entry, bad);
    EXPECT_EQ(build(folder), std::pair(1, 0));
    EXPECT_EQ(slurp(entry).size(), good.size());  // the entry was repaired
  }
  const std::vector<backends::cpu::Source> other = {{"twice", sources[0].text + "// another text\n"}};
  EXPECT_EQ(backends::cpu::jit(other, {.cache_dir = folder}).compiled, 1);
  // the same text through another compiler is another entry
  const std::string alias = dir / "cc";
  spit(alias, "#!/bin/sh\nexec " + backends::cpu::find_compiler() + " \"$@\"\n");
  ASSERT_EQ(::chmod(alias.c_str(), 0755), 0);
  EXPECT_EQ(backends::cpu::jit(sources, {.compiler = alias, .cache_dir = folder}).compiled, 1);
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_EQ(build(folder), std::pair(1, 0));  // other users could have written there
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(build(folder), std::pair(0, 1));
  std::filesystem::create_directory_symlink(folder, dir / "link");
  EXPECT_EQ(build(dir / "link"), std::pair(1, 0));
  EXPECT_EQ(build("off"), std::pair(1, 0));
}

TEST(Jit, StandardStreamsMayBeClosed) {
  NEEDS_C_COMPILER();
  for (const int closed : {1, 2, 4, 7, 8, 15})
    EXPECT_EQ(in_child([&] {
                for (int fd = 0; fd < 4; ++fd)
                  if (closed >> fd & 1) ::close(fd);
                return built(3, {.cache_dir = "off"}) == kCompiled ? 0 : 1;
              }),
              0)
        << closed;
}

TEST(Jit, OnlyAProgramIsACompiler) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  const std::string real = backends::cpu::find_compiler();
  std::filesystem::create_directories(dir / "a/cc");
  std::filesystem::create_directories(dir / "b");
  std::filesystem::create_symlink(real, dir / "b/cc");
  const Setting wish("LIGHTCONE_CC", nullptr), path("PATH", (dir / "a:" + dir / "b").c_str());
  EXPECT_EQ(backends::cpu::find_compiler(), dir / "b/cc");
  EXPECT_TRUE(
      contains(words([&] { backends::cpu::find_compiler({.compiler = dir / "a/cc"}); }), "no program that can be run"));
  const Setting here("PATH", ":.:b");  // a relative entry of PATH must not be searched
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir / "b");
  EXPECT_TRUE(backends::cpu::find_compiler({.llvm = kMissing}).empty());
  std::filesystem::current_path(before);
}

TEST(Jit, SaysThatAProgramIsNoCompiler) {
  const std::string said = words([] { built(2, {.compiler = "true", .cache_dir = "off"}); });
  EXPECT_TRUE(contains(said, "wrote no shared object")) << said;
  EXPECT_TRUE(contains(said, "LIGHTCONE_CC")) << said;
}

// Clang may have a name that does not show it, as /usr/bin/cc on some systems: it is given GCC's own option only once.
TEST(Jit, ACompilerThatRefusesAnOptionOfGccIsCalledWithoutIt) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  const std::string asked = dir / "asked", real = backends::cpu::find_compiler();
  const std::string refuses = "echo \"clang: error: unknown argument: '-fvect-cost-model=dynamic'\" >&2; exit 1";
  const std::string cc = script(dir / "cc", str_cat("case \"$*\" in *-fvect*) echo . >>", asked, "; ", refuses,
                                                    ";; esac\nexec ", real, " \"$@\""));
  const JitOptions o{.compiler = cc, .cache_dir = dir / "cache"};
  EXPECT_EQ(built(2, o), kCompiled);
  EXPECT_EQ(built(2, o), kFromCache);
  EXPECT_EQ(built(3, o), kCompiled);
  EXPECT_EQ(slurp(asked), ".\n");
  // A compiler that fails with the same words without the option has failed.
  const std::string never = script(dir / "never", refuses);
  EXPECT_TRUE(contains(words([&] { built(2, {.compiler = never, .cache_dir = "off"}); }), "exit status 1"));
}

// Clang is not given GCC's options, under whatever name it is called.
TEST(Jit, ClangIsNotGivenOptionsOfGcc) {
  const TempDir dir;
  const std::string clang = dir / "clang-99", cc = dir / "cc";
  spit(clang,
       "#!/bin/sh\ncase \"$*\" in *-fvect*) exit 1;; esac\nexec " + backends::cpu::find_compiler() + " \"$@\"\n");
  ASSERT_EQ(::chmod(clang.c_str(), 0755), 0);
  std::filesystem::create_symlink(clang, cc);
  const std::vector<backends::cpu::Source> sources = {
      {"none", "void none(const void* const* in, void* out, const long* n, long begin, long end) {}\n"}};
  for (const std::string& compiler : {clang, cc})
    EXPECT_EQ(backends::cpu::jit(sources, {.compiler = compiler, .cache_dir = "off"}).compiled, 1);
  const std::string gcc = dir / "gcc-99", asked = dir / "asked";
  spit(gcc, "#!/bin/sh\ncase \"$*\" in *-fvect*) touch " + asked + ";; esac\nexit 1\n");
  ASSERT_EQ(::chmod(gcc.c_str(), 0755), 0);
  EXPECT_THROW(backends::cpu::jit(sources, {.compiler = gcc, .cache_dir = "off"}), Error);
  EXPECT_TRUE(std::filesystem::exists(asked));
}

TEST(Jit, NoDescriptorIsLost) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  const std::string odd = dir / "cc";
  spit(odd, "\177ELF no program\n");
  ::chmod(odd.c_str(), 0755);
  const std::size_t before = open_descriptors();
  EXPECT_TRUE(contains(words([&] { built(2, {.compiler = odd, .cache_dir = "off"}); }), "cannot start"));
  EXPECT_THROW(built(2, {.compiler = "false", .cache_dir = "off"}), Error);
  EXPECT_THROW(built(2, {.compiler = "true", .cache_dir = "off"}), Error);
  EXPECT_EQ(built(2, {.cache_dir = dir / "cache"}), kCompiled);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Jit, KernelsOfOneNameAreOneKernel) {
  NEEDS_C_COMPILER();
  for (const char* compiler : {"", "llvm"}) {
    if (*compiler && backends::cpu::find_llvm().path.empty()) continue;
    const JitOptions o{.compiler = compiler, .cache_dir = "off"};
    const std::vector<backends::cpu::Source> two = {times(2), times(3)};
    EXPECT_TRUE(contains(words([&] { backends::cpu::jit(two, o); }), "two kernels of one name"));
  }
  const std::vector<backends::cpu::Source> same = {times(2), times(2), {"times", ""}};
  const backends::cpu::Jitted j = backends::cpu::jit(same, {.cache_dir = "off"});
  EXPECT_EQ(j.functions, std::vector<backends::cpu::KernelFunction>(3, j.functions[0]));
}

// Another library of the process may bring an LLVM of its own. Regression: PoCL's clang 15 called functions of LLVM 16.
TEST(Jit, LlvmIsInvisibleToOtherLibraries) {
  if (backends::cpu::find_llvm().path.empty()) GTEST_SKIP() << backends::cpu::find_llvm().problem;
  for (const char* name : {"LLVMContextCreate", "llvm_orc_registerEHFrameSectionWrapper"})
    EXPECT_EQ(::dlsym(RTLD_DEFAULT, name), nullptr) << name;
}

TEST(Jit, NoCompilerMeansTheInterpreterOfTheIr) {
  EXPECT_EQ(backends::cpu::find_compiler({.compiler = "none"}), "");
  EXPECT_THROW(backends::cpu::find_compiler({.compiler = "/no/such/cc"}), Error);  // an Error, unlike "none"
  Graph g;
  g.output("y", prim::exp2(g.input("x", {2})));
  const Compiled done = transform(g, cpu({.threads = 1, .jit = {.compiler = "none"}}));
  EXPECT_EQ(fired(done.log, "C units compiled"), 0);
  EXPECT_EQ(fired(done.log, "C units from cache"), 0);
  EXPECT_THROW(transform(g, cpu({.threads = 1, .jit = {.compiler = "/bin/false", .cache_dir = "off"}})), Error);
}

TEST(Jit, TextsWithOneHashHaveTwoNames) {
  codegen::KernelNames names([](const std::string& text) { return text.size(); });
  const std::string a = names.of("one"), b = names.of("two"), c = names.of("six");
  EXPECT_EQ(a, "k_0000000000000003");
  EXPECT_EQ((std::set<std::string>{a, b, c}.size()), 3u);
  EXPECT_EQ(names.of("one") + names.of("two") + names.of("six"), a + b + c);
}

// Kernels with the same code are rendered once. Constants that compare equal (0 and -0) are not always the same number.
TEST(KernelNames, KernelsOfTheSameCodeShareOneAndAreWrittenOnce) {
  codegen::KernelNames names;
  codegen::Kernel zero;
  zero.instrs.push_back({.value = 0.0});
  codegen::Kernel minus = zero, other = zero;
  minus.instrs[0].value = -0.0;
  other.store_offset = 1;
  int written = 0;
  const auto of = [&](const codegen::Kernel& k) { return names.of(k, [&] { return str_cat("text ", ++written); }); };
  const std::string first = of(zero);
  zero.name = "another";
  EXPECT_EQ(of(zero), first);
  EXPECT_EQ(written, 1);
  EXPECT_NE(of(minus), first);
  EXPECT_NE(of(other), first);
  EXPECT_EQ(written, 3);
}

// The messages of compilers that cannot work, whatever they are given.
TEST(Fallback, ACompilerThatDoesNotWorkIsReplacedAndThatIsSaid) {
  const TempDir dir;
  const std::string cc = dir / "cc";
  struct Failure {
    const char *text, *said;
  };
  const Failure failures[] = {
      {"echo \"cc: fatal error: cannot execute 'ld'\" >&2; exit 1", "cannot execute 'ld'"},
      {"echo 'cc: fatal error: vfork: Resource temporarily unavailable' >&2; exit 4", "exit status 4"},
      {"echo '/tmp/x.s: fatal error: error writing to /tmp/x.s: No space left on device'; exit 1", "No space left"},
      {"echo '<stdin>:9:1: error: everything is wrong' >&2; exit 1", "everything is wrong"},  // the prelude fails, too
      {"kill -9 $$", "signal 9"},
      {"exit 0", "wrote no shared object"}};
  const bool llvm = !backends::cpu::find_llvm().path.empty();
  for (const Failure& f : failures) {
    script(cc, f.text);
    const Outcome none = compiled_graph(dir.path.string(), kMissing);
    ASSERT_EQ(none.notes.size(), 1u) << f.text;
    EXPECT_TRUE(contains(none.notes[0], cc)) << none.notes[0];
    EXPECT_TRUE(contains(none.notes[0], f.said)) << none.notes[0];
    EXPECT_TRUE(contains(none.notes[0], "kernels are interpreted, 2 to 18 times slower")) << none.notes[0];
    EXPECT_TRUE(contains(none.profile, none.notes[0])) << none.profile;
    EXPECT_EQ(none.fired.at("loops interpreted"), 1);
    if (!llvm) continue;
    const Outcome by_llvm = compiled_graph(dir.path.string(), "");
    ASSERT_EQ(by_llvm.notes.size(), 1u) << f.text;
    EXPECT_TRUE(contains(by_llvm.notes[0], f.said)) << by_llvm.notes[0];
    EXPECT_TRUE(contains(by_llvm.notes[0], "LLVM's library compiled the kernels instead")) << by_llvm.notes[0];
    EXPECT_EQ(by_llvm.fired.at("LLVM units compiled"), 1);
    EXPECT_FALSE(by_llvm.fired.contains("loops interpreted"));
  }
}

// A real compiler that cannot find its assembler. (Clang searches its own folder.)
TEST(Fallback, ACompilerWithoutItsToolsIsReplaced) {
  NEEDS_C_COMPILER();
  const TempDir dir;
  script(dir / "cc", str_cat("PATH=/nonexistent exec ", backends::cpu::find_compiler(), " -no-integrated-as \"$@\""));
  if (std::system(str_cat("echo 'int a;' | ", dir / "cc", " -x c -c -o ", dir / "a.o", " - 2>&1").c_str()) == 0)
    GTEST_SKIP() << "this compiler finds its assembler without PATH";
  const Outcome o = compiled_graph(dir.path.string(), kMissing);
  ASSERT_EQ(o.notes.size(), 1u);
  EXPECT_TRUE(contains(o.notes[0], "interpreted")) << o.notes[0];
}

TEST(Fallback, NoCompilerAtAllIsSaidAndAWishIsNot) {
  const Outcome o = compiled_graph("/nonexistent", kMissing);
  ASSERT_EQ(o.notes.size(), 1u);
  EXPECT_TRUE(contains(o.notes[0], "neither a C compiler nor LLVM's library was found: kernels are interpreted"));
  Graph g;
  g.output("y", prim::exp2(g.input("x", {3})));
  for (const CpuOptions& wish :
       {CpuOptions{.threads = 1, .compiler = false}, CpuOptions{.threads = 1, .jit = {.compiler = "none"}}}) {
    const Program p = compile(g, cpu(wish));
    EXPECT_TRUE(p.notes().empty());
    EXPECT_EQ(fired(p.log(), "loops interpreted"), 1);
  }
}

TEST(Fallback, ACompilerThatWasNamedIsNotReplaced) {
  Graph g;
  g.output("y", prim::exp2(g.input("x", {3})));
  const Setting wish("LIGHTCONE_CC", "false");
  EXPECT_TRUE(contains(words([&] { compile(g, cpu({.threads = 1, .jit = {.cache_dir = "off"}})); }), "exit status 1"));
}

// Invalid generated code is a bug of the library, so it is reported and not hidden by a fallback.
TEST(Fallback, TextThatACompilerRefusesIsAnError) {
  NEEDS_C_COMPILER();
  const backends::cpu::Source wrong{"wrong", "void wrong( { }\n"};
  try {
    backends::cpu::jit({&wrong, 1}, {.cache_dir = "off"});
    FAIL();
  } catch (const backends::cpu::CompilerUnfit& e) {
    FAIL() << e.what();
  } catch (const Error& e) {
    EXPECT_TRUE(contains(e.what(), "<stdin>")) << e.what();
  }
}

TEST(Fallback, ABatchSaysItToo) {
  const Setting path("PATH", "/nonexistent"), wish("LIGHTCONE_CC", nullptr);
  Graph g;
  g.output("y", prim::exp2(g.input("x", {3})));
  PassLog log;
  cpu_batch({&g, &g}, {.threads = 1, .jit = {.llvm = kMissing}}, &log);
  EXPECT_EQ(log.notes.size(), 1u);
}
