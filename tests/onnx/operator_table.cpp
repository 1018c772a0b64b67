// docs/onnx.md, the table of ONNX's operators, from the rows that the importer has.
//
//   onnx_table                            prints the page
//   onnx_table --check PAGE OPERATORS     fails if PAGE is another, or if an operator of the file OPERATORS has no row
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "lightcone/base/error.h"
#include "lightcone/onnx/read/operators.h"

namespace {

using lc::onnx::Operator;

std::string title(std::string_view domain) { return domain.empty() ? "ai.onnx" : std::string(domain); }

std::string page() {
  std::map<std::string_view, std::pair<int, int>> counts;  // by domain: read, refused
  for (const Operator& o : lc::onnx::operators()) ++(o.rule ? counts[o.domain].first : counts[o.domain].second);
  std::string s =
      "# Operators of ONNX\n\n"
      "`read_onnx()` reads these operators ([guide](guide/onnx.md)). This page is made from the importer's table by\n"
      "`onnx_table`, and a test compares them.\n\n"
      "*Since* is the lowest operator set that is read. An operator set up to " +
      std::to_string(lc::onnx::kNewestOpset) +
      " of ai.onnx may ask for it.\n"
      "An attribute that a rule does not know, and a value of one that it does not support, is an Error that names "
      "the\n"
      "node.\n\n"
      "| domain | read | refused |\n|---|---|---|\n";
  for (const auto& [domain, n] : counts) s += lc::str_cat("| ", title(domain), " | ", n.first, " | ", n.second, " |\n");
  std::string_view last = "?";
  for (const Operator& o : lc::onnx::operators()) {
    if (o.domain != last) {
      s += lc::str_cat("\n## ", title(o.domain), "\n\n| operator | since | becomes |\n|---|---|---|\n");
      last = o.domain;
    }
    s += lc::str_cat("| ", o.name, " | ", o.rule ? std::to_string(o.since) : "-", " | ",
                     o.rule ? "" : "refused: ", o.how, " |\n");
  }
  return s;
}

std::string contents(const char* file) {
  std::ifstream f(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

int check(const char* file, const char* list) {
  int wrong = 0;
  if (contents(file) != page()) std::printf("%s is not what onnx_table prints\n", file), ++wrong;
  std::istringstream lines(contents(list));
  int operators = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ');
    const std::string domain = line.substr(0, space), name = line.substr(space + 1);
    ++operators;
    if (!lc::onnx::find_operator(domain == "-" ? "" : domain, name))
      std::printf("%s has no row\n", line.c_str()), ++wrong;
  }
  if (operators == 0) std::printf("%s has no operators\n", list), ++wrong;
  return wrong > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--check") return check(argv[2], argv[3]);
  std::fputs(page().c_str(), stdout);
  return 0;
}
