// Generated loops use the target's full vector width on AVX2, AVX-512 and NEON. The test reads the compiler's assembly
// text.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "lightcone/backends/cpu/jit/c_flags.h"
#include "lightcone/backends/cpu/lower.h"
#include "lightcone/codegen/c/prelude.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"

using namespace lc;

namespace {

struct Target {
  const char *compiler, *march;
  backends::cpu::Isa isa;
  int vector;  // bytes
  // regular expressions: instructions that compute with vectors of floats, and the widest registers
  const char *packed, *widest;
};
// On x86, packed single-precision arithmetic is counted by register name; on Arm, by the register's arrangement.
const Target kTargets[] = {
    {"gcc", "-march=haswell", backends::cpu::Isa::Avx2, 32, R"(\tv(add|sub|mul|div|max|min|fn?m\w+)[0-9]*ps\t.*)",
     "%ymm"},
    {"gcc", "-march=znver3", backends::cpu::Isa::Avx2, 32, R"(\tv(add|sub|mul|div|max|min|fn?m\w+)[0-9]*ps\t.*)",
     "%ymm"},
    {"gcc", "-march=skylake-avx512", backends::cpu::Isa::Avx512, 64,
     R"(\tv(add|sub|mul|div|max|min|fn?m\w+)[0-9]*ps\t.*)", "%zmm"},
    {"gcc", "-march=cascadelake", backends::cpu::Isa::Avx512, 64, R"(\tv(add|sub|mul|div|max|min|fn?m\w+)[0-9]*ps\t.*)",
     "%zmm"},
    {"aarch64-linux-gnu-gcc", "-march=armv8.2-a", backends::cpu::Isa::Neon, 16,
     R"(\tf(add|sub|mul|div|max|min|mla|mls)\tv[0-9]+\.[24]s.*)", ".4s"},
};

// Returns the assembly of `text`, or "" if there is no such compiler.
std::string assembly(const Target& t, const std::string& text) {
  const auto folder = std::filesystem::temp_directory_path() / ("lightcone-width-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string in = folder / "kernel.c", out = folder / "kernel.s";
  std::ofstream(in) << codegen::c_prelude() << text;
  std::string command = t.compiler;
  for (const std::string& f : backends::cpu::c_flags(t.compiler, t.vector, t.isa))
    if (f != "-march=native" && f != "-shared" && f != "-pipe" &&
        !(t.isa == backends::cpu::Isa::Neon && f.starts_with("-mp")))
      command += " " + f;
  std::filesystem::remove(out);
  const int status = std::system((command + " " + t.march + " -S -o " + out + " " + in + " 2>" + out + ".log").c_str());
  std::ostringstream s;
  if (status == 0) s << std::ifstream(out).rdbuf();
  else if (status != 127 << 8) ADD_FAILURE() << command << "\n" << std::ifstream(out + ".log").rdbuf();
  std::filesystem::remove_all(folder);
  return s.str();
}

// Returns the innermost loops: the lines from a label to a conditional jump back to it, without another such jump
// between. (The remainder loops that a compiler places elsewhere jump back without a condition.)
std::vector<std::vector<std::string>> innermost_loops(const std::string& text) {
  std::vector<std::string> lines;
  std::map<std::string, std::size_t> labels;
  std::vector<std::vector<std::string>> loops;
  std::istringstream s(text);
  static const std::regex jump(R"(\t(j(?!mp)\w+|b\.?[a-z]{2,3}|cbn?z|tbn?z)\t(.*[ ,])?(\.L[0-9]+))");
  std::size_t last = 0;  // the end of the previous loop
  for (std::string line; std::getline(s, line);) {
    lines.push_back(line);
    if (line.starts_with(".L") && line.ends_with(":")) labels[line.substr(0, line.size() - 1)] = lines.size();
    std::smatch m;
    if (!std::regex_match(line, m, jump)) continue;
    const auto target = labels.find(m[3]);
    if (target == labels.end() || target->second < last) continue;
    loops.emplace_back(lines.begin() + static_cast<std::ptrdiff_t>(target->second), lines.end());
    last = lines.size();
  }
  return loops;
}

// Counts what copies an array in pieces in a loop for x86: loads of partial vectors from the stack, and vectors that
// are put together from general registers.
int pieces(const Target& t, const std::vector<std::string>& loop) {
  static const std::regex load(R"(\tvmov\w+\t-?[0-9]*\(%r[sb]p\), (%[xy]mm)[0-9]+)");
  int n = 0;
  std::smatch m;
  for (const std::string& line : loop)
    n += (std::regex_match(line, m, load) && m[1] != t.widest) || line.starts_with("\tvpinsrq");
  return n;
}

struct Counted {
  int loops = 0, narrow = 0, pieces = 0;
  std::string shown;
};
Counted count(const Target& t, const std::string& text) {
  static std::map<std::string, std::regex> known;
  const std::regex& packed = known.try_emplace(t.packed, t.packed).first->second;
  Counted c;
  for (const auto& loop : innermost_loops(text)) {
    int wide = 0, narrow = 0;
    for (const std::string& line : loop)
      if (std::regex_match(line, packed)) ++(line.find(t.widest) != std::string::npos ? wide : narrow);
    c.loops += wide > 0;
    const int copied = wide > 0 ? pieces(t, loop) : 0;
    c.narrow += narrow > 0, c.pieces += copied;
    if (narrow == 0 && copied == 0) continue;
    for (const std::string& line : loop) c.shown += line + "\n";
  }
  return c;
}

std::string kernel_text(Tensor (*make)(Tensor), DType type, std::int64_t rows = 4096) {
  Graph g;
  g.output("y", make(g.input("x", {rows, 4096}, type)));
  const Graph c = transform(g, generic() | cpu({.threads = 1, .compiler = false, .machine = Machine{}})).graph;
  std::string text;
  for (NodeId id = 0; id < c.size(); ++id)
    if (const auto* k = dynamic_cast<const backends::cpu::LoopKernel*>(c[id].kernel.get())) text += k->text(k->name());
  return text;
}

const std::pair<const char*, Tensor (*)(Tensor)> kKernels[] = {
    {"gelu", [](Tensor x) { return gelu(x); }},
    {"exp", [](Tensor x) { return exp(x); }},
    {"chain", [](Tensor x) { return relu(x * x + 1.0) * 2.0 + x; }},
    {"softmax", [](Tensor x) { return softmax(x, -1); }},
    {"layer norm", [](Tensor x) { return layer_norm(x, {x.extent(-1)}); }},
    {"sum", [](Tensor x) { return sum(x * x, {1}); }},
};

}  // namespace

TEST(Width, OfEveryGeneratedLoop) {
  int targets = 0;
  for (const Target& t : kTargets)
    for (const auto& [name, make] : kKernels) {
      SCOPED_TRACE(std::string(t.march) + " " + name);
      // Large results are stored past the caches, small ones are not.
      const std::string text =
          assembly(t, kernel_text(make, DType::F32)) + assembly(t, kernel_text(make, DType::F32, 64));
      if (text.empty()) continue;  // this compiler is not installed
      ++targets;
      const Counted c = count(t, text);
      EXPECT_GT(c.loops, 0);
      EXPECT_EQ(c.narrow, 0) << c.shown;
      EXPECT_EQ(c.pieces, 0) << c.shown;
    }
  if (targets == 0) GTEST_SKIP() << "there is no gcc";
}

// Checks that the counting detects narrow vectors: with the compiler's own tuning for this processor they are half as
// wide.
TEST(Width, ATuningThatHalvesVectorsIsSeen) {
  Target t = kTargets[3];
  t.vector = 32;
  const std::string text = assembly(t, kernel_text(kKernels[0].second, DType::F32));
  if (text.empty()) GTEST_SKIP() << "there is no gcc";
  EXPECT_GT(count(kTargets[3], text).narrow, 0);
}
