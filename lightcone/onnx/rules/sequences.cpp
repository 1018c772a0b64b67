// Sequences and optionals, which are resolved while the model is read: a sequence is a list of values.
#include "lightcone/onnx/read/call.h"

namespace lc::onnx {
namespace {

constexpr std::int64_t kMostSequenceParts = 65536;  // elements that a tensor is split into

const Values& sequence_operand(const Call& c, std::size_t k) {
  const Value& v = c.value(k);
  if (!v.sequence) c.refuse(str_cat("operand ", k, " is no sequence"));
  return *v.sequence;
}
Value sequence_of(Call& c, Values elements) {
  c.importer.keep(elements.size());
  Value v;
  v.sequence = std::make_shared<const Values>(std::move(elements));
  return v;
}
// A position operand in [0, last], which counts from the end of `n` elements if it is negative.
std::ptrdiff_t sequence_position(const Call& c, std::size_t operand, std::size_t n, std::size_t last) {
  const std::int64_t at = c.integer(operand), count = static_cast<std::int64_t>(n);
  if (at < -count || at > static_cast<std::int64_t>(last))
    c.refuse(str_cat("has position ", at, " in a sequence of ", n));
  return static_cast<std::ptrdiff_t>(at < 0 ? at + count : at);
}

Values sequence_construct(Call& c) {
  for (std::size_t k = 0; k < c.in.size(); ++k) c.value(k);
  return {sequence_of(c, c.in)};
}
Values sequence_empty(Call& c) {
  c.ignore("dtype");
  return {sequence_of(c, {})};
}
Values sequence_at(Call& c) {
  const Values& s = sequence_operand(c, 0);
  if (s.empty()) c.refuse("reads an element of an empty sequence");
  return {s[static_cast<std::size_t>(sequence_position(c, 1, s.size(), s.size() - 1))]};
}
Values sequence_insert(Call& c) {
  Values s = sequence_operand(c, 0);
  const auto at = c.has(2) ? sequence_position(c, 2, s.size(), s.size()) : static_cast<std::ptrdiff_t>(s.size());
  s.insert(s.begin() + at, c.value(1));
  return {sequence_of(c, std::move(s))};
}
Values sequence_erase(Call& c) {
  Values s = sequence_operand(c, 0);
  if (s.empty()) c.refuse("removes an element of an empty sequence");
  s.erase(s.begin() +
          (c.has(1) ? sequence_position(c, 1, s.size(), s.size() - 1) : static_cast<std::ptrdiff_t>(s.size()) - 1));
  return {sequence_of(c, std::move(s))};
}
Values sequence_length(Call& c) {
  return {c.graph().constant(static_cast<std::int64_t>(sequence_operand(c, 0).size()), DType::I64)};
}

Values split_to_sequence(Call& c) {
  const Tensor x = c.x(0);
  const int axis = c.axis("axis", 0, x.rank());
  const bool keep = c.flag("keepdims", true) || c.has(1);
  std::vector<Dim> sizes;
  if (c.has(1) && c.x(1).rank() == 1) {
    sizes = c.dims(1);
  } else {
    const std::int64_t each = c.has(1) ? c.integer(1) : 1, n = fixed(c, x.extent(axis), "the extent to split");
    if (each < 1) c.refuse(str_cat("splits into parts of ", each));
    if (n / each > kMostSequenceParts)
      c.refuse(str_cat("splits ", n, " elements into more than ", kMostSequenceParts, " parts"));
    for (std::int64_t at = 0; at < n; at += each) sizes.push_back(std::min(each, n - at));
  }
  Values parts;
  c.importer.keep(sizes.size());
  Dim at = 0;
  for (const Dim& n : sizes) {
    const Tensor part = narrow(x, axis, at, n);
    parts.push_back(keep ? part : part.squeeze(axis));
    at = at + n;
  }
  if (!(at == x.extent(axis))) c.importer.same_extent(at, x.extent(axis));
  return {sequence_of(c, std::move(parts))};
}

Values concat_from_sequence(Call& c) {
  std::vector<Tensor> all;
  for (const Value& v : sequence_operand(c, 0)) {
    if (!v.tensor.defined() || v.count) c.refuse("joins elements that are no tensors of a known size");
    all.push_back(v.tensor);
  }
  if (all.empty()) c.refuse("joins the elements of an empty sequence");
  const bool is_new = c.flag("new_axis");
  const int rank = all[0].rank() + (is_new ? 1 : 0), axis = c.wrap(c.integer("axis"), rank);
  std::vector<Tensor> parts;
  for (Tensor& t : all) {
    if (is_new) t = t.unsqueeze(axis);
    if (t.rank() != rank || t.dtype() != all[0].dtype()) c.refuse("joins tensors of different types or ranks");
    for (int k = 0; k < rank; ++k)
      if (k != axis) c.importer.same_extent(all[0].extent(k), t.extent(k));
    if (!(t.extent(axis) == Dim(0))) parts.push_back(t);
  }
  if (parts.empty()) return {all[0]};
  return {parts.size() == 1 ? parts[0] : concat(parts, axis)};
}

// The body runs once for each element of the first operand.
Values sequence_map(Call& c) {
  const GraphData& body = c.graph("body");
  const std::size_t n = sequence_operand(c, 0).size();
  std::vector<Values> results(c.results());
  for (std::size_t k = 0; k < n; ++k) {
    Values arguments;
    for (std::size_t i = 0; i < c.in.size(); ++i) {
      const Value& v = c.value(i);
      if (v.sequence && v.sequence->size() != n) c.refuse("has sequences of different lengths");
      arguments.push_back(v.sequence ? (*v.sequence)[k] : v);
    }
    Values r = c.importer.subgraph(body, arguments);
    if (r.size() != results.size()) c.refuse(str_cat("its body has ", r.size(), " results, not ", results.size()));
    for (std::size_t i = 0; i < r.size(); ++i) results[i].push_back(std::move(r[i]));
  }
  Values out;
  for (Values& v : results) out.push_back(sequence_of(c, std::move(v)));
  return out;
}

Values make_optional(Call& c) {
  c.ignore("type");
  if (c.has(0)) return {c.value(0)};
  Value v;
  v.none = true;
  return {v};
}
Values optional_element(Call& c) {
  if (c.value(0).none) c.refuse("reads an optional that has no value");
  return {c.value(0)};
}
Values optional_has(Call& c) { return {full(c.graph(), {}, c.has(0) && !c.in[0].none ? 1 : 0, DType::Bool)}; }

}  // namespace

void add_sequences(Operators& t) {
  const Operator rows[] = {
      {"", "ConcatFromSequence", 11, concat_from_sequence, "cat or stack"},
      {"", "Optional", 15, make_optional, "its operand, or nothing; resolved while reading"},
      {"", "OptionalGetElement", 15, optional_element, "its operand"},
      {"", "OptionalHasElement", 15, optional_has, "a constant"},
      {"", "RegexFullMatch", 20, nullptr, "tensors hold no texts"},
      {"", "SequenceAt", 11, sequence_at, "the element; the position is known while reading"},
      {"", "SequenceConstruct", 11, sequence_construct, "a list that is resolved while reading"},
      {"", "SequenceEmpty", 11, sequence_empty, "a list that is resolved while reading"},
      {"", "SequenceErase", 11, sequence_erase, "a list that is resolved while reading"},
      {"", "SequenceInsert", 11, sequence_insert, "a list that is resolved while reading"},
      {"", "SequenceLength", 11, sequence_length, "a constant"},
      {"", "SequenceMap", 17, sequence_map, "the body, once for each element"},
      {"", "SplitToSequence", 11, split_to_sequence, "narrow"},
      {"", "StringConcat", 20, nullptr, "tensors hold no texts"},
      {"", "StringNormalizer", 10, nullptr, "tensors hold no texts"},
      {"", "StringSplit", 20, nullptr, "tensors hold no texts"},
      {"", "TfIdfVectorizer", 9, nullptr, "counts of n-grams are not supported"},
  };
  t.insert(t.end(), std::begin(rows), std::end(rows));
}

}  // namespace lc::onnx
