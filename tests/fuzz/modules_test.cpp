// StableHLO modules with changed words are read or refused with a line, in time and within their memory budget.
//
// LIGHTCONE_FUZZ makes more of them, LIGHTCONE_FUZZ_SEED other ones.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "lightcone/base/error.h"
#include "lightcone/stablehlo/read.h"
#include "memory.h"
#include "paths.h"
#include "processor_time.h"

using namespace lc;

namespace {

using Words = std::vector<std::string>;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* v = std::getenv(name);
  return v ? std::strtoull(v, nullptr, 10) : otherwise;
}

// Splits a text into words: names and numbers are whole words, every other character is a word.
Words words_of(const std::string& text) {
  Words all;
  for (std::size_t k = 0; k < text.size();) {
    std::size_t end = k;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' || text[end] == '.'))
      ++end;
    if (end == k) ++end;
    all.push_back(text.substr(k, end - k));
    k = end;
  }
  return all;
}

std::string joined(const Words& w) {
  std::string s;
  for (const std::string& each : w) s += each;
  return s;
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<Words>& corpus) : random_(seed), corpus_(corpus) {}

  std::string module() {
    Words w = corpus_[draw(corpus_.size())];
    for (std::uint64_t times = 1 + draw(4); times > 0; --times) change(w);
    return joined(w);
  }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  void change(Words& w) {
    const std::size_t at = draw(w.size());
    const auto place = w.begin() + static_cast<std::ptrdiff_t>(at);
    switch (draw(9)) {
      case 0: w[at] = number(); break;
      case 1: w[at] = w[draw(w.size())]; break;  // copies a word from elsewhere in the text
      case 2: {
        const Words& other = corpus_[draw(corpus_.size())];
        w[at] = other[draw(other.size())];
        break;
      }
      case 3: w.erase(place, w.begin() + static_cast<std::ptrdiff_t>(std::min(w.size() - 1, at + 1 + draw(20)))); break;
      case 4: {
        const std::size_t end = std::min(w.size(), at + 1 + draw(200));
        const Words piece(place, w.begin() + static_cast<std::ptrdiff_t>(end));
        w.insert(w.begin() + static_cast<std::ptrdiff_t>(draw(w.size())), piece.begin(), piece.end());
        break;
      }
      case 5: w[at] = word(); break;
      case 6: w.resize(at + 1); break;
      case 7: replace_number(w); break;
      default:
        if (!w[at].empty()) w[at][draw(w[at].size())] = static_cast<char>(draw(256));
    }
  }
  // Replaces one number, which is the false claim that readers most often believe.
  void replace_number(Words& w) {
    for (std::size_t tries = 0; tries < 200; ++tries)
      if (std::string& s = w[draw(w.size())]; !s.empty() && std::isdigit(static_cast<unsigned char>(s[0]))) {
        const std::size_t x = s.find('x');
        s = x == std::string::npos ? number() : number() + s.substr(x);
        return;
      }
  }
  std::string number() {
    static const char* const kNumbers[] = {"0",
                                           "1",
                                           "2",
                                           "3",
                                           "-1",
                                           "7",
                                           "64",
                                           "4096",
                                           "1000000",
                                           "281474976710655",
                                           "9223372036854775807",
                                           "18446744073709551615",
                                           "-9223372036854775808",
                                           "0x7FC00000",
                                           "1e400",
                                           "0.5"};
    return kNumbers[draw(std::size(kNumbers))];
  }
  std::string word() {
    static const char* const kWords[] = {"tensor",
                                         "f32",
                                         "i1",
                                         "ui64",
                                         "complex<f32>",
                                         "f64",
                                         "bf16",
                                         "?",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "<",
                                         ">",
                                         "%",
                                         "#",
                                         "@",
                                         "\"",
                                         "->",
                                         "dense",
                                         "array",
                                         "true",
                                         "^bb0",
                                         "stablehlo.while",
                                         "stablehlo.reduce",
                                         "stablehlo.sort",
                                         "x",
                                         ":",
                                         ",",
                                         "=",
                                         "loc",
                                         "//",
                                         "\n"};
    return kWords[draw(std::size(kWords))];
  }

  std::mt19937_64 random_;
  const std::vector<Words>& corpus_;
};

std::vector<Words> corpus() {
  std::vector<Words> all;
  const auto add = [&](const std::filesystem::path& folder, std::size_t most) {
    if (!std::filesystem::is_directory(folder)) return;
    std::vector<std::filesystem::path> files;
    for (const auto& e : std::filesystem::directory_iterator(folder))
      if (e.path().extension() == ".mlir" && e.file_size() < 20'000) files.push_back(e.path());
    std::ranges::sort(files);
    const std::size_t step = std::max<std::size_t>(1, files.size() / most);
    for (std::size_t k = 0; k < files.size(); k += step) {
      std::ifstream f(files[k]);
      const std::string text{std::istreambuf_iterator<char>(f), {}};
      all.push_back(words_of(text));
      try {  // adds its printed form, too
        all.push_back(words_of(stablehlo::print(stablehlo::parse(text))));
      } catch (const Error&) {
      }
    }
  };
  add(std::string(paths::kSource) + "/tests/stablehlo/modules", 100);
  add(std::string(paths::kData) + "/stablehlo/interpret", 100);
  add(std::string(paths::kData) + "/stablehlo/testdata", 60);
  return all;
}

TEST(Modules, OfChangedWordsAreReadOrRefused) {
  const std::uint64_t seed = from_environment("LIGHTCONE_FUZZ_SEED", 1),
                      times = from_environment("LIGHTCONE_FUZZ", 4000);
  const std::vector<Words> all = corpus();
  ASSERT_GE(all.size(), 8u);
  Mutator mutator(seed, all);
  std::size_t read = 0, refused = 0;
  for (std::uint64_t k = 0; k < times; ++k) {
    const std::string text = mutator.module();
    const std::size_t before = counted::live();
    counted::reset_most();
    bool good = true;
    std::string what;
    const double seconds = test::least_seconds(5, [&] {
      try {
        const StableHloProgram s = read_stablehlo(text);
      } catch (const Error& e) {
        good = false, what = e.what();
      }
    });
    ++(good ? read : refused);
    if (!good) {
      EXPECT_TRUE(what.find("line ") != std::string::npos || what.find("has no function") != std::string::npos)
          << what << "\n"
          << text;
      EXPECT_LT(what.size(), 20'000u);
    }
    const std::size_t most = counted::most() - before;
    EXPECT_LT(most, (64u << 20) + 2000 * text.size()) << "case " << k << ":\n" << text;
    EXPECT_LT(seconds, 5) << "case " << k << ":\n" << text;
    if (HasFailure()) return;
  }
  RecordProperty("read", static_cast<int>(read));
  EXPECT_GT(read, times / 100);
  EXPECT_GT(refused, times / 50);
}

std::string refusal(const std::string& text) {
  try {
    read_stablehlo(text);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

// Short texts that describe exponentially large values are refused within the promised memory.
TEST(Modules, WhatGrowsLikePowersOfTwoIsRefused) {
  const auto doubling = [](const std::string& first, const std::string& begin, const std::string& between,
                           const std::string& end, const std::string& used) {
    std::string text = first;
    for (int k = 1; k < 40; ++k) {
      const std::string one = std::to_string(k - 1);
      text += begin.substr(0, 2) + std::to_string(k) + begin.substr(2) + one + between + one + end + "\n";
    }
    return text + used;
  };
  const std::string main = "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n";
  std::string wide = "!t = tensor<1";
  for (int k = 0; k < 60; ++k) wide += "x1";
  wide += "xf32>\nfunc.func @main(%x: !t) -> !t {\n";
  for (int k = 0; k < 200; ++k)
    wide += "  %v" + std::to_string(k) + ":10000 = stablehlo.optimization_barrier %x : !t\n";
  std::string many = main;
  for (int k = 0; k < 500; ++k) many += "  %v" + std::to_string(k) + ":10000 = stablehlo.abs %x : tensor<f32>\n";
  std::string barrier = "!t = tuple<tensor<f32>" + std::string(5000, ' ') + ", tensor<f32>>\nfunc.func @main(%x: !t";
  for (int k = 0; k < 20000; ++k) barrier += ", %a" + std::to_string(k) + ": !t";
  barrier += ") {\n  return\n}\n";
  const std::string texts[] = {
      doubling("#a0 = [1 : i64]\n", "#a = [#a", ", #a", "]", "module attributes {x = #a39} {}"),
      doubling("#a0 = {a = \"text\"}\n", "#a = {x = #a", ", y = #a", "}", "module attributes {x = #a39} {}"),
      doubling("#a0 = #stablehlo.gather<offset_dims = [0]>\n", "#a = #stablehlo.gather<x = #a", ", y = #a", ">",
               "module attributes {x = #a39} {}"),
      wide,
      many,
      barrier};
  for (const std::string& text : texts) {
    const std::size_t before = counted::live();
    counted::reset_most();
    const std::string what = refusal(text);
    EXPECT_NE(what.find("takes more than 256 times the memory of its text"), std::string::npos) << what << "\n"
                                                                                                << text.substr(0, 200);
    EXPECT_LT(counted::most() - before, (std::size_t{64} << 20) + 400 * text.size()) << text.substr(0, 200);
  }
}

// Nesting uses stack, so its depth is limited.
TEST(Modules, WhatIsNestedDeepIsRefused) {
  const std::string head = "func.func @f0(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n";
  const auto calls = [&](int deep) {
    std::string text = head;
    for (int k = 1; k <= deep; ++k) {
      text += "func.func @" + (k == deep ? "main" : "f" + std::to_string(k)) + "(%x: tensor<f32>) -> tensor<f32> {\n";
      text += "  %y = call @f" + std::to_string(k - 1) + "(%x) : (tensor<f32>) -> tensor<f32>\n";
      text += "  return %y : tensor<f32>\n}\n";
    }
    return text;
  };
  EXPECT_EQ(refusal(calls(150)), "");
  for (const int deep : {250, 7000}) {
    const std::string what = refusal(calls(deep));
    EXPECT_NE(what.find("line "), std::string::npos) << what;
    EXPECT_NE(what.find("calls and regions are nested more than 200 deep"), std::string::npos) << what;
  }
  const auto nested = [](const std::string& open, const std::string& middle, const std::string& close, int deep) {
    std::string text = "func.func @main(%x: tensor<f32>) attributes {a = ";
    for (int k = 0; k < deep; ++k) text += open;
    text += middle;
    for (int k = 0; k < deep; ++k) text += close;
    return text + "} {\n  return\n}\n";
  };
  for (const auto& [open, middle, close] :
       {std::array{"[", "1", "]"}, std::array{"{a = ", "1", "}"}, std::array{"#stablehlo.gather<a = ", "1", ">"},
        std::array{"tensor<2xf32, ", "1", ">"}})
    EXPECT_NE(refusal(nested(open, middle, close, 9000)).find("nested more than 100 deep"), std::string::npos) << open;
}

}  // namespace
