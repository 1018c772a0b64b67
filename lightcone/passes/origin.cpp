#include "lightcone/passes/origin.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace lc {
namespace {

// Maps C++ operators to PyTorch's names.
std::string_view pytorch_name(std::string_view call) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kOperators{{
      {"operator+", "add"},
      {"operator-", "sub"},
      {"operator*", "mul"},
      {"operator/", "div"},
      {"operator%", "remainder"},
      {"operator<", "lt"},
      {"operator<=", "le"},
      {"operator>", "gt"},
      {"operator>=", "ge"},
      {"operator==", "eq"},
      {"operator!=", "ne"},
      {"operator&&", "logical_and"},
      {"operator||", "logical_or"},
      {"operator!", "logical_not"},
  }};
  const auto at = std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& o) { return o.first == call; });
  return at == kOperators.end() ? call : at->second;
}

}  // namespace

std::vector<Origin::Step> steps(const Graph& g, NodeId result, const std::vector<NodeId>& operands,
                                const std::map<NodeId, std::string>& shapes) {
  std::set<NodeId> seen(operands.begin(), operands.end()), computed{result};
  std::vector<NodeId> stack{result};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const Edge& e : g[id].in)
      if (info(g[e.node].op).kind != Kind::Leaf && seen.insert(e.node).second) {
        computed.insert(e.node);
        stack.push_back(e.node);
      }
  }
  std::vector<Origin::Step> made;
  for (NodeId id : computed) {
    const auto known = shapes.find(id);
    made.push_back({info(g[id].op).name, g[id].where, known == shapes.end() ? std::string{} : known->second});
  }
  return made;
}

std::string_view call_name(const Origin::Step& s) {
  return pytorch_name(*s.where.op ? std::string_view(s.where.op) : s.op);
}

bool spans_model(std::string_view call) {
  static constexpr std::array<std::string_view, 11> kCalls{
      "backward",       "gradients",       "vjp",        "jvp", "hvp", "optim.step",
      "clip_grad_norm", "clip_grad_value", "accumulate", "ema", "swa"};
  return std::find(kCalls.begin(), kCalls.end(), call) != kCalls.end();
}

std::string describe(const Origin& o) {
  struct Call {
    std::string_view name;
    std::string shapes;
    std::vector<std::string_view> ops;
  };
  std::vector<Call> calls;  // in order of first use
  for (const Origin::Step& s : o.steps) {
    const std::string_view name = call_name(s);
    auto it = std::find_if(calls.begin(), calls.end(), [&](const Call& c) { return c.name == name; });
    // the epilogue of one layer and the product of the next one are two calls
    const bool again = it != calls.end() && !s.shapes.empty() && it->shapes.empty() && it + 1 != calls.end();
    if (it == calls.end() || again) it = calls.insert(calls.end(), {name, {}, {}});
    if (!s.shapes.empty()) it->shapes += (it->shapes.empty() ? " " : " and ") + s.shapes;
    if (s.op != "contiguous" && std::find(it->ops.begin(), it->ops.end(), s.op) == it->ops.end())
      it->ops.push_back(s.op);
  }
  if (calls.size() > 1) std::erase_if(calls, [](const Call& c) { return c.name == "contiguous"; });  // casts and copies
  std::string text;
  for (const Call& c : calls) {
    text += str_cat(text.empty() ? "" : ", ", c.name, c.shapes);
    if (!spans_model(c.name) || c.ops.empty() || !c.shapes.empty()) continue;
    std::string ops;
    for (const std::string_view op : c.ops) ops += str_cat(ops.empty() ? "" : ", ", op);
    text += str_cat(" (", ops, ")");
  }
  if (o.kind.empty()) return text;
  return text.empty() ? o.kind : str_cat(o.kind, " (", text, ")");
}

}  // namespace lc
