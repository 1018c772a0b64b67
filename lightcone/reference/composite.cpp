// Evaluates composites: by their own rule, as a loop, or by their definition.
#include <map>

#include "lightcone/reference/internal.h"
#include "lightcone/reference/rule.h"

namespace lc {
namespace {

// Evaluates the definition with the operands' samples, so that its roundings are sampled too.
std::vector<Value> defined(const Node& n, Operands in, const Bindings& env, const EvalConfig& config) {
  Graph g;
  std::vector<Tensor> operands;
  std::map<std::string, Value> given;
  for (std::size_t k = 0; k < in.size(); ++k) {
    const std::string name = str_cat("operand ", k);
    operands.push_back(g.input(name, Shape(in[k]->shape.begin(), in[k]->shape.end()), in[k]->dtype));
    given[name] = *in[k];
  }
  Node at_these_sizes = n;
  std::vector<Attributes::Entry> attributes;
  for (Attributes::Entry e : n.attributes.entries()) {
    if (const Dim* d = std::get_if<Dim>(&e.value)) e.value = Dim(d->eval(env));
    attributes.push_back(std::move(e));
  }
  at_these_sizes.attributes = Attributes(std::move(attributes));
  std::vector<std::string> names;
  for (const Tensor& t : n.composite->define(at_these_sizes.attributes, operands)) {
    names.push_back(str_cat("result ", names.size()));
    g.output(names.back(), t);
  }
  Results r = interpret_samples(g, given, config);
  std::vector<Value> results;
  for (const std::string& name : names) results.push_back(std::move(r.outputs.at(name)));
  return results;
}

}  // namespace

Value composite(const Node& n, Operands in, const Integers& shape, const Bindings& env, const EvalConfig& config) {
  const ReferenceRule* own = n.composite->reference.get();
  std::vector<Value> results = own ? own->evaluate({n, in, shape, env, config.rounding, config.noise, config.products})
                               : n.composite->loop ? looped(*n.composite->loop, in, config)
                                                   : defined(n, in, env, config);
  const std::size_t wanted = n.results.empty() ? 1 : n.results.size();
  if (results.size() != wanted)
    throw Error(n.composite->name, str_cat("its evaluation gives ", results.size(), " results, its infer() ", wanted));
  for (std::size_t k = 0; k < wanted; ++k) {
    const DType t = n.results.empty() ? n.dtype : n.results[k].dtype;
    const Integers s = n.results.empty() ? shape : numbers(n.results[k].shape, env);
    if (results[k].dtype != t || results[k].shape != s)
      throw Error(n.composite->name, str_cat("result ", k, " of its evaluation is not what its infer() says"));
  }
  if (n.results.empty()) return std::move(results[0]);
  Value all;
  all.dtype = n.dtype;
  all.parts = std::move(results);
  return all;
}

}  // namespace lc
