// The page is a fixed program (page/) plus the pictures as JSON: tables of numbers that index one table of strings.
#include "lightcone/runtime/view/graph_view.h"
#include "lightcone/core/op_eval.h"

#include <cstdio>
#include <map>
#include <unordered_map>

#include "lightcone/core/composite.h"
#include "lightcone/device/kernel.h"
#include "lightcone/runtime/profile/profiler.h"
#include "lightcone/runtime/view/groups.h"
#include "lightcone/runtime/view/page.h"

namespace lc {
namespace {

// Quotes a string as JSON that is safe inside of <script>: no '<', whatever names a file has for its tensors.
std::string in_quotes(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127 || c == '<' || c == '>' || c == '&' || c == '"' || c == '\\') {
      char text[8];
      std::snprintf(text, sizeof text, "\\u%04x", byte);
      out += text;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string escape(std::string_view s) {
  std::string out;
  for (const char c : s) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

class Texts {
 public:
  std::size_t operator()(const std::string& s) {
    const auto [at, fresh] = known_.try_emplace(s, known_.size());
    if (fresh) json_ += str_cat(json_.empty() ? "" : ",", in_quotes(s));
    return at->second;
  }
  std::string json() const { return str_cat('[', json_, ']'); }

 private:
  std::unordered_map<std::string, std::size_t> known_;
  std::string json_;
};

template <class T>
void append(std::string& list, const T& x) {
  if (!list.empty()) list += ',';
  list += str_cat(x);
}

std::string in_words(const View& v) {
  static constexpr const char* kNames[] = {"permute", "expand", "reshape", "slice", "pad", "unfold"};
  std::string s;
  for (const Move& m : v.moves()) s += str_cat(s.empty() ? "" : ", ", kNames[static_cast<int>(m.kind)]);
  return s.empty() ? s : str_cat(s, " to ", str(v.shape()));
}

// The kind of a node, as page/ draws it.
enum class Look { Input, Weight, State, Numbers, Elementwise, Reduce, Copy, Composite, Kernel, Output };

class Drawing {
 public:
  Drawing(const Graph& g, Texts& texts) : g_(g), texts_(texts), grouping_(view::group_nodes(g)), state_(g.size()) {
    for (const Assignment& a : g.assignments()) state_[a.state] = true;
    name_parts();
  }
  std::string json();

 private:
  void name_parts();
  Look look(NodeId id) const;
  double value(NodeId id) const;
  std::string label(NodeId id) const;
  std::string about(NodeId id) const;
  void node(NodeId id);
  void edge(int from, int to, const View& v) { append(edges_, str_cat(from, ',', to, ',', texts_(in_words(v)))); }

  const Graph& g_;
  Texts& texts_;
  view::Grouping grouping_;
  std::map<NodeId, std::string> parts_;  // names of a kernel's several results: "result 2 of 3"
  std::vector<bool> state_;
  std::vector<int> place_;  // row in the tables, by NodeId
  int rows_ = 0;
  std::string ids_, looks_, labels_, shapes_, abouts_, groups_, beside_, edges_, writes_;
};

void Drawing::name_parts() {
  std::map<NodeId, std::map<std::int64_t, NodeId>> parts;  // by the kernel that makes them, in the order of offsets
  for (NodeId id = 0; id < g_.size(); ++id)
    if (const Node& n = g_[id]; grouping_.drawn[id] && n.op == Op::Kernel)
      if (const auto at = n.kernel->part()) parts[n.in[0].node][at->bounds().hi] = id;
  for (const auto& [whole, all] : parts) {
    int k = 0;
    for (const auto& [at, id] : all) parts_[id] = str_cat("result ", ++k, " of ", all.size());
  }
}

Look Drawing::look(NodeId id) const {
  const Node& n = g_[id];
  if (n.op == Op::Input)
    return state_[id] ? n.parameter ? Look::Weight : Look::State : n.parameter ? Look::Weight : Look::Input;
  if (grouping_.beside[id] && n.op != Op::Index) return grouping_.fixed[id] ? Look::Numbers : Look::Weight;
  if (n.op == Op::Kernel) return Look::Kernel;
  switch (info(n.op).kind) {
    case Kind::Leaf: return Look::Numbers;
    case Kind::Elementwise: return Look::Elementwise;
    case Kind::Reduce: return Look::Reduce;
    case Kind::Copy: return Look::Copy;
    default: return Look::Composite;
  }
}

// Returns the value of a scalar that depends on constants only.
double Drawing::value(NodeId id) const {
  const Node& n = g_[id];
  if (n.op == Op::Constant) return n.value;
  double x[3] = {};
  for (std::size_t k = 0; k < n.in.size() && k < 3; ++k) x[k] = value(n.in[k].node);
  if (eval_of(n.op).f) return eval_of(n.op).f(x[0], x[1], x[2]);
  const auto integers = on_integers(n.op, n.dtype);
  const auto whole = [&](std::size_t k) { return load_i64(x, DType::F64, k); };
  return integers ? to_f64(integers(whole(0), whole(1), whole(2)), n.dtype) : x[0];
}

std::string Drawing::label(NodeId id) const {
  const Node& n = g_[id];
  if (const auto at = parts_.find(id); at != parts_.end()) return at->second;
  if (n.op == Op::Kernel) return title_of(n);
  if (n.composite) return n.composite->name;
  if (grouping_.beside[id] && grouping_.fixed[id]) return str_cat(value(id));
  if (n.op == Op::Contiguous && g_[n.in[0].node].dtype != n.dtype) return str_cat("cast to ", name(n.dtype));
  if (n.op == Op::Contiguous) return "copy";
  if (grouping_.alone[id] && *n.where.op && !std::string_view(n.where.op).starts_with("operator") &&
      n.where.op != info(n.op).name)
    return n.where.op;
  if (info(n.op).kind == Kind::Reduce) return str_cat(info(n.op).name, " over axis ", n.axis);
  return n.op == Op::Index ? n.index.str() : g_.label(id);
}

std::string Drawing::about(NodeId id) const {
  const Node& n = g_[id];
  std::string s;
  const auto line = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) s += str_cat(s.empty() ? "" : "\n", key, "\t", value);
  };
  if (n.op == Op::Kernel) {
    if (!n.kernel->origin.steps.empty()) line("computes", what_it_computes(n));
    line("kernel", n.name);
    line("made by", n.kernel->origin.pass);
    const Dim flops = n.kernel->flops();
    if (!(flops == Dim(0))) line("operations", flops.str());
    line("at", lines_of(n));
  } else {
    if (*n.where.op) line("call", n.where.op);
    if (!n.attributes.empty()) line("attributes", n.attributes.str());
    line("at", n.where.str());
  }
  return s;
}

void Drawing::node(NodeId id) {
  const Node& n = g_[id];
  append(ids_, id);
  append(looks_, static_cast<int>(look(id)));
  append(labels_, texts_(label(id)));
  append(shapes_, texts_(str_cat(name(n.dtype), str(n.shape))));
  append(abouts_, texts_(about(id)));
  append(groups_, grouping_.of[id]);
  append(beside_, grouping_.beside[id] ? 1 : 0);
}

std::string Drawing::json() {
  place_.assign(g_.size(), -1);
  for (NodeId id = 0; id < g_.size(); ++id) {
    if (!grouping_.drawn[id]) continue;
    place_[id] = rows_++;
    node(id);
    for (const Edge& e : g_[id].in)
      if (place_[e.node] >= 0) edge(place_[e.node], place_[id], e.view);
  }
  for (const Assignment& a : g_.assignments())
    if (place_[a.state] >= 0 && place_[a.next.node] >= 0)
      append(writes_, str_cat(place_[a.next.node], ',', place_[a.state]));
  for (const Root& r : g_.roots()) {
    const Node& n = g_[r.edge.node];
    append(ids_, -1);
    append(looks_, static_cast<int>(Look::Output));
    append(labels_, texts_(r.name));
    append(shapes_, texts_(str_cat(name(n.dtype), str(r.edge.view.shape()))));
    append(abouts_, texts_(""));
    append(groups_, -1);
    append(beside_, 0);
    edge(place_[r.edge.node], rows_++, r.edge.view);
  }
  std::string parents, names, calls, wheres;
  for (const view::Group& k : grouping_.groups) {
    append(parents, k.parent);
    append(names, texts_(k.name));
    append(calls, texts_(k.calls));
    append(wheres, texts_(k.where.str()));
  }
  return str_cat("{\"id\":[", ids_, "],\n\"look\":[", looks_, "],\n\"label\":[", labels_, "],\n\"shape\":[", shapes_,
                 "],\n\"about\":[", abouts_, "],\n\"group\":[", groups_, "],\n\"beside\":[", beside_, "],\n\"edges\":[",
                 edges_, "],\n\"writes\":[", writes_, "],\n\"groups\":{\"parent\":[", parents, "],\"name\":[", names,
                 "],\"calls\":[", calls, "],\"where\":[", wheres, "]}}");
}

}  // namespace

std::string graph_html(const std::vector<Picture>& pictures, std::string_view title) {
  Texts texts;
  std::string data, titles;
  for (const Picture& p : pictures) {
    append(titles, in_quotes(p.title));
    data +=
        str_cat("<script type=\"application/json\" class=\"picture\">", Drawing(*p.graph, texts).json(), "</script>\n");
  }
  return str_cat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">"
      "<title>",
      escape(title), "</title>\n<style>\n", view::kStyle, "</style></head><body>\n", view::kBody, data,
      "<script type=\"application/json\" id=\"texts\">{\"titles\":[", titles, "],\"texts\":", texts.json(),
      "}</script>\n<script>\n", view::kModel, view::kLayout, "</script>\n<script>\n", view::kDraw,
      "</script>\n<script>\n", view::kPage, "</script></body></html>\n");
}

}  // namespace lc
