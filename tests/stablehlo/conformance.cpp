// StableHLO's own test modules pass, except for those that tests/stablehlo/conformance.txt lists with their reasons.
//
//   stablehlo_conformance FOLDER [--compiled] [--only FILE] [--expected FILE] [--write FILE]
//
// --only: the files to run, a name a line. --expected: the files that do not pass, with reasons; the run fails when one
// of them is another. --write makes that list. Without --compiled the kernels are interpreted: no C compiler is called.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "module_checks.h"

namespace {

std::string contents(const std::filesystem::path& p) {
  std::ifstream f(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

std::set<std::string> lines(const std::string& file) {
  std::set<std::string> all;
  std::ifstream f(file);
  for (std::string line; std::getline(f, line);)
    if (!line.empty() && line[0] != '#') all.insert(line);
  return all;
}

// Returns "kind file: why", without line numbers of the module.
std::string described(const std::string& file, const lc::test::Outcome& o) {
  std::string why = o.why;
  std::ranges::replace(why, '\n', ' ');
  if (const auto at = why.find("read:"); at != std::string::npos) why = why.substr(at + 5);
  while (!why.empty() && why[0] == ' ') why.erase(0, 1);
  const bool unsupported = o.kind == lc::test::Outcome::Kind::Unsupported;
  if (unsupported && why.starts_with("line ")) why = why.substr(std::min(why.find(": "), why.size() - 2) + 2);
  if (const auto more = why.find("  line "); more != std::string::npos) why = why.substr(0, more);
  why = why.substr(0, 160);
  while (!why.empty() && why.back() == ' ') why.pop_back();
  return (unsupported ? "unsupported " : "failed ") + file + ": " + why;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder, only, expected, write;
  bool compiled = false;
  for (int k = 1; k < argc; ++k) {
    const std::string a = argv[k];
    if (a == "--compiled") compiled = true;
    else if (a == "--only" && k + 1 < argc) only = argv[++k];
    else if (a == "--expected" && k + 1 < argc) expected = argv[++k];
    else if (a == "--write" && k + 1 < argc) write = argv[++k];
    else folder = a;
  }
  if (!std::filesystem::is_directory(folder)) {
    std::printf("SKIPPED: there is no folder of modules at %s\n", folder.c_str());
    return 77;
  }
  const std::set<std::string> chosen = only.empty() ? std::set<std::string>() : lines(only);
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
    if (e.path().extension() == ".mlir" && (only.empty() || chosen.contains(e.path().filename().string())))
      files.push_back(e.path());
  std::ranges::sort(files);
  const lc::Compiler compiler = lc::generic() | lc::cpu({.threads = 1, .compiler = compiled});
  std::map<lc::test::Outcome::Kind, int> count;
  std::vector<std::string> others;
  int checks = 0, by_bounds = 0;
  for (const auto& f : files) {
    const lc::test::Outcome o = lc::test::run_file(contents(f), compiler);
    ++count[o.kind], checks += o.checks, by_bounds += o.by_bounds;
    if (o.by_bounds > 0) std::printf("by bounds: %s\n", f.filename().c_str());
    if (o.kind == lc::test::Outcome::Kind::Fail || o.kind == lc::test::Outcome::Kind::Unsupported)
      others.push_back(described(std::filesystem::relative(f, folder).string(), o));
  }
  using Kind = lc::test::Outcome::Kind;
  std::printf(
      "%zu files: %d passed (%d checks, %d of them right by the reference's bounds alone), %d not supported, %d "
      "failed, %d check nothing\n",
      files.size(), count[Kind::Pass], checks, by_bounds, count[Kind::Unsupported], count[Kind::Fail],
      count[Kind::Nothing]);
  if (!write.empty()) {
    std::ofstream out(write);
    for (const std::string& line : others) out << line << "\n";
  }
  if (expected.empty()) {
    if (write.empty())
      for (const std::string& line : others) std::printf("%s\n", line.c_str());
    return count[Kind::Fail] > 0;
  }
  const std::set<std::string> known = lines(expected), found(others.begin(), others.end());
  int wrong = 0;
  for (const std::string& line : found)
    if (!known.contains(line)) std::printf("NEW %s\n", line.c_str()), ++wrong;
  for (const std::string& line : known)
    if (!found.contains(line)) std::printf("GONE %s\n", line.c_str()), ++wrong;
  return wrong > 0 || count[Kind::Fail] > 0;
}
