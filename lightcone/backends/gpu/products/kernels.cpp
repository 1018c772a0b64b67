#include "lightcone/backends/gpu/products/kernels.h"

#include <algorithm>

#include "lightcone/backends/gpu/products/operand.h"

namespace lc::backends::gpu {

using std::to_string;

std::vector<codegen::simt::Parameter> ProductTexts::parameters() const {
  std::vector<codegen::simt::Parameter> all{{element_type(p.a.type), "in_a"}, {element_type(p.b.type), "in_b"}};
  if (parts) {
    all.push_back({sum_type(), "out_", true});
    return all;
  }
  for (const codegen::simt::Parameter& more : epilogue.parameters()) all.push_back(more);
  all.push_back({std::string(info(epilogue.result).c), "out_", true});
  return all;
}

std::string ProductTexts::functions() const {
  std::string s = value_functions(p.a.type);
  return p.a.type == p.b.type ? s : s + value_functions(p.b.type);
}

std::string ProductTexts::finished(Writer& w, int threads, std::string_view first, int resident) const {
  return functions() +
         codegen::simt::begin_kernel(language, "@", threads, parameters(), kGivenSizes + w.sizes().size(), w.index(),
                                     resident, first) +
         w.text() + "}\n";
}

void ProductTexts::store(Writer& w, const std::string& index, const std::string& sum) const {
  if (parts) return w.line("out_[part * " + w.number(p.results()) + " + " + index + "] = " + sum + ";");
  w.let("c_at", index);
  const codegen::simt::InlinedLines lines = epilogue.at(w, p, "c_at", sum, language);
  w.raw(lines.text);
  w.line("out_[c_at] = " + lines.result + ";");
}

bool ProductTexts::pairs() const {
  const auto even = [](const std::vector<Dim>& strides) {
    return std::all_of(strides.begin(), strides.end(), [](const Dim& d) { return multiple(d, 2); });
  };
  return p.columns.size() == 1 && p.c_columns[0] == Dim(1) && multiple(p.columns[0], 2) && even(p.c_rows) &&
         even(p.c_batch);
}

void ProductTexts::store_two(Writer& w, const std::string& index, const std::string& first,
                             const std::string& second) const {
  const std::string type = parts ? sum_type() : std::string(info(epilogue.result).c);
  w.line("LC_VECTOR(" + type + ", 2, two_);");
  w.let("two_at", parts ? "part * " + w.number(p.results()) + " + " + index : index);
  for (int e = 0; e < 2; ++e) {
    const std::string& sum = e ? second : first;
    w.open("{");
    if (parts) {
      w.line("LC_AT(two_, " + to_string(e) + ") = " + sum + ";");
    } else {
      w.let("c_at", e ? "two_at + 1" : "two_at");
      const codegen::simt::InlinedLines lines = epilogue.at(w, p, "c_at", sum, language);
      w.raw(lines.text);
      w.line("LC_AT(two_, " + to_string(e) + ") = " + lines.result + ";");
    }
    w.close();
  }
  w.line("LC_STOREV(" + type + ", 2, out_ + two_at, two_);");
}

void ProductTexts::store_neighbours(Writer& w, const std::string& column,
                                    const std::function<std::string(int e)>& sum) const {
  const std::string columns = w.number(product(p.columns));
  if (pairs()) {
    w.let("column", column);
    w.open("if (column < " + columns + ") {");
    store_two(w, "c_row + column", sum(0), sum(1));
    return w.close();
  }
  for (int e = 0; e < 2; ++e) {
    w.open("{");
    w.let("column", column + (e ? " + 1" : ""));
    w.open("if (column < " + columns + ") {");
    const auto in = w.indices(p.columns, "column", "q");
    store(w, w.offset("c_row", in, p.c_columns), sum(e));
    w.close();
    w.close();
  }
}

// Consecutive thread blocks share columns, so that B is read from the cache.
std::vector<std::string> ProductTexts::locate(Writer& w, int rows, int columns) const {
  const Dim m = (product(p.rows) + Dim(rows - 1)) / Dim(rows),
            n = (product(p.columns) + Dim(columns - 1)) / Dim(columns);
  const std::string tiles_m = w.number(m), tiles_n = w.number(n), u = w.index() == "long" ? "(u64)" : "(u32)";
  const auto split = [&](const std::string& from, const std::string& by, const std::string& inner,
                         const std::string& rest) {
    w.let(inner, "(" + w.index() + ")(" + u + from + " % " + u + by + ")");
    w.let(rest, "(" + w.index() + ")(" + u + from + " / " + u + by + ")");
  };
  w.let("group", "(" + w.index() + ")LC_GROUP");
  split("group", tiles_m, "tile_m", "rest_m");
  split("rest_m", tiles_n, "tile_n", "rest_n");
  split("rest_n", "n0", "part", "batch");
  w.let("k_begin", "part * n1");
  const std::string k = w.number(product(p.sum));
  w.let("k_end", "k_begin + n1 < " + k + " ? k_begin + n1 : " + k);
  std::vector<std::string> batch = w.indices(p.batch, "batch", "b");
  w.let("a_base", w.offset(w.number(p.a.offset), batch, p.a.batch));
  w.let("b_base", w.offset(w.number(p.b.offset), batch, p.b.batch));
  w.let("c_base", w.offset("0", batch, p.c_batch));
  return batch;
}

// A thread adds the parts of one result. Predicted: splits + 1 numbers moved a result, all contiguous.
KernelText ProductTexts::add_parts() const {
  constexpr int kThreads = 256;
  Writer w(p.needs_64bit_index, kGivenSizes);
  const std::string results = w.number(p.results());
  w.let("at", "(" + w.index() + ")LC_GROUP * " + to_string(kThreads) + " + LC_THREAD");
  w.line("if (at >= " + results + ") return;");
  w.line(sum_type() + " sum = in_part[at];");
  w.line("for (" + w.index() + " s = 1; s < n0; ++s) sum = sum + in_part[s * " + results + " + at];");
  store(w, "at", "sum");
  std::vector<codegen::simt::Parameter> all{{sum_type(), "in_part"}};
  for (const codegen::simt::Parameter& more : epilogue.parameters()) all.push_back(more);
  all.push_back({std::string(info(epilogue.result).c), "out_", true});
  KernelText t{"", kThreads, w.sizes()};
  t.text = codegen::simt::begin_kernel(language, "@", kThreads, all, kGivenSizes + w.sizes().size(), w.index()) +
           w.text() + "}\n";
  t.columns = kThreads;
  return t;
}

}  // namespace lc::backends::gpu
