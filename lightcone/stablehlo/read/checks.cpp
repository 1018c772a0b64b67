// Rules for checks: the dialect `check` of test modules, custom calls with its names, and conditions on shapes in JAX's
// exports.
#include "lightcone/stablehlo/read/reader.h"

namespace lc::stablehlo {
namespace {

using CheckKind = StableHloProgram::Check::Kind;

std::vector<Tensor> check_against(const Call& c, const std::string& what) {
  Tensor expected;
  if (what.ends_with("_const")) {
    const Attribute* value = c.op.find("value");
    if (!value || c.in.size() != 1) c.refuse("has no value to expect");
    expected = c.reader.constant(*value);
  } else {
    if (c.in.size() != 2) c.refuse("takes two operands");
    expected = c.in[1];
  }
  if (!(expected.shape() == c.x().shape()) || expected.dtype() != c.x().dtype())
    c.refuse("compares tensors of different types");
  if (what.starts_with("check.expect_almost_eq"))
    c.reader.check(c, c.x(), expected, CheckKind::Tolerance, c.number("tolerance", 0.001));
  else if (what.starts_with("check.expect_eq")) c.reader.check(c, c.x(), expected, CheckKind::Equal, 0);
  else if (what == "check.expect_close")
    c.reader.check(c, c.x(), expected, CheckKind::Ulps, c.number("max_ulp_difference", 3));
  else c.refuse("is not supported");
  return {};
}

std::vector<Tensor> check_operation(const Call& c) { return check_against(c, c.op.name); }

// Checks a condition on extents, which are constants by now. Its message refers to the operands after it as {0}, {1},
// ...
std::vector<Tensor> shape_assertion(const Call& c) {
  const auto holds = c.reader.known(c.in.at(0));
  if (!holds || holds->size() != 1) c.refuse("asserts what depends on data: shapes alone are asserted");
  if ((*holds)[0]) return {};
  std::string message = c.word("error_message", "it says no more");
  for (std::size_t k = 1; k < c.in.size(); ++k) {
    const auto v = c.reader.known(c.in[k]);
    const std::string name = str_cat("{", k - 1, "}"), number = v && v->size() == 1 ? str_cat((*v)[0]) : "?";
    for (std::size_t at = 0; (at = message.find(name, at)) != std::string::npos; at += number.size())
      message.replace(at, name.size(), number);
  }
  c.refuse("the module does not allow these shapes: " + message);
}

std::vector<Tensor> custom_call(const Call& c) {
  const std::string target = c.word("call_target_name");
  if (target == "check.eq") {  // returns the result of the comparison
    check_against(c, "check.expect_eq");
    return {all(eq(c.in[0], c.in[1]))};
  }
  if (target.starts_with("check.")) return check_against(c, target);
  if (target == "shape_assertion") return shape_assertion(c);
  if (target == "Sharding" || target == "annotate_device_placement") return {c.in.at(0)};
  static const Rules known = [] {
    Rules r;
    add_factorisation_calls(r);
    return r;
  }();
  if (const auto rule = known.find(target); rule != known.end()) return rule->second(c);
  c.refuse(str_cat("of '", target, "' is not supported"));
}

}  // namespace

void add_checks(Rules& r) {
  r["stablehlo.custom_call"] = custom_call;
  for (const char* name : {"sdy.sharding_constraint", "builtin.unrealized_conversion_cast"})  // one device: no effect
    r[name] = [](const Call& c) { return std::vector{c.in.at(0)}; };
  for (const char* name : {"check.expect_eq", "check.expect_eq_const", "check.expect_almost_eq",
                           "check.expect_almost_eq_const", "check.expect_close"})
    r[name] = check_operation;
}

}  // namespace lc::stablehlo
