// ONNX's own test cases: none is answered wrongly, and enough are answered.
//
//   onnx_conformance FOLDER [--compiled] [--device] [--every N] [--only TEXT] [--at-least N] [--quiet]
//
// FOLDER holds a folder for each case. --only: cases whose names contain this text. --every: each Nth of them.
// --at-least: fails if fewer cases pass. Without --compiled the kernels are interpreted: no C compiler is called.
// --device runs them on LIGHTCONE_TEST_DEVICE.
#include <algorithm>
#include <cstdio>
#include <map>

#include "case_files.h"
#include "on_device.h"

int main(int argc, char** argv) {
  std::string folder, only;
  bool compiled = false, quiet = false, device = false;
  int at_least = 0, every = 1;
  for (int k = 1; k < argc; ++k) {
    const std::string a = argv[k];
    if (a == "--compiled") compiled = true;
    else if (a == "--quiet") quiet = true;
    else if (a == "--device") device = true;
    else if (a == "--every" && k + 1 < argc) every = std::max(1, std::atoi(argv[++k]));
    else if (a == "--only" && k + 1 < argc) only = argv[++k];
    else if (a == "--at-least" && k + 1 < argc) at_least = std::atoi(argv[++k]);
    else folder = a;
  }
  if (!std::filesystem::is_directory(folder)) {
    std::printf("SKIPPED: there is no folder of cases at %s\n", folder.c_str());
    return 77;
  }
  std::vector<std::filesystem::path> cases;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(e.path() / "model.onnx") &&
        e.path().filename().string().find(only) != std::string::npos)
      cases.push_back(e.path());
  std::ranges::sort(cases);
  const lc::CpuOptions options{.threads = 1, .compiler = compiled};
  const lc::Compiler compiler = lc::generic() | (device ? lc::test::device(options) : lc::cpu(options));
  using Kind = lc::test::CaseResult::Kind;
  std::map<Kind, int> count;
  for (std::size_t k = 0; k < cases.size(); k += static_cast<std::size_t>(every)) {
    const auto& c = cases[k];
    const lc::test::CaseResult r = lc::test::run_case(c, compiler);
    ++count[r.kind];
    std::string why = r.why;
    std::ranges::replace(why, '\n', ' ');
    if (r.kind == Kind::Wrong || (r.kind == Kind::Refused && !quiet))
      std::printf("%s %s: %s\n", r.kind == Kind::Wrong ? "WRONG" : "refused", c.filename().c_str(), why.c_str());
  }
  std::printf("%d cases: %d passed, %d refused, %d wrong\n",
              count[Kind::Pass] + count[Kind::Refused] + count[Kind::Wrong], count[Kind::Pass], count[Kind::Refused],
              count[Kind::Wrong]);
  return count[Kind::Wrong] > 0 || count[Kind::Pass] < at_least;
}
