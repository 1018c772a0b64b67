#!/usr/bin/env python3
"""Prints lightcone/onnx/read/attributes.cpp from the schemas of the Python package onnx.

    python3 tools/make_onnx_attributes.py > lightcone/onnx/read/attributes.cpp && clang-format-16 -i lightcone/onnx/read/attributes.cpp"""
import onnx
from onnx import defs

names = {}
for schema in defs.get_all_schemas_with_history():
    if schema.domain in ("", "ai.onnx.ml"):
        names.setdefault((schema.domain, schema.name), set()).update(schema.attributes)

print("""// Made by tools/make_onnx_attributes.py from the schemas of onnx %s. Do not edit.
#include "lightcone/onnx/read/attributes.h"

#include <algorithm>
#include <tuple>

namespace lc::onnx {
namespace {

struct Row {
  std::string_view domain, op, attributes;
};
constexpr Row kRows[] = {""" % onnx.__version__)
for (domain, op), attributes in sorted(names.items()):
    words = sorted(attributes)
    lines = [""]
    for word in words:  # a line of C++ has at most 120 columns
        if len(lines[-1]) + len(word) > 90:
            lines[-1] += " "
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    print('    {"%s", "%s", %s},' % (domain, op, " ".join('"%s"' % line for line in lines)))
print("""};

}  // namespace

std::optional<std::string_view> attributes_of(std::string_view domain, std::string_view op) {
  const auto key = [](const Row& r) { return std::tuple(r.domain, r.op); };
  const Row* at = std::ranges::lower_bound(kRows, std::tuple(domain, op), {}, key);
  if (at == std::end(kRows) || at->domain != domain || at->op != op) return std::nullopt;
  return at->attributes;
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace lc::onnx""")
