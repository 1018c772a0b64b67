// The names of tensors: how each is reached from the root of a pickle, and what else lies beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/checkpoints/torch/values.h"

namespace lc::io::torch {

// A part of a value by its name in it: a key, a place, an attribute.
struct Child {
  std::string_view name;
  std::int64_t place;  // used where there is no name
  Id value;
};

// Visits the parts of a container or an object, until a visitor returns false; then it returns false, too.
//
// A module (an object with _parameters and _modules) has its parameters, its buffers except those that are not
// persistent, and its modules; other attributes are left out, as state_dict() does. With `others` a module has those
// attributes instead, except Python's own.
using Visitor = std::function<bool(const Child&)>;
bool visit_children(const Values& v, Id of, bool others, const Visitor& visit);

// A tensor's path and its number in the arena.
using Path = std::pair<std::string, std::size_t>;
struct Paths {
  std::vector<Path> tensors;     // by name
  std::vector<bool> has_tensor;  // for each value of the arena: a tensor is reached from it
  std::string left_out;          // the outermost key that names leave out; "": none
};
// Finds all tensors below the root. Throws Error where there are more paths, or longer ones, than a file of this size
// should have, or where two tensors have the same path.
Paths paths_of_tensors(Values& v, Id root);

// Returns the plain values at most two steps below the root by their paths, as texts of a bounded length.
// `describe_tensor` gives the text of a tensor of the arena.
std::map<std::string, std::string> plain_values(Values& v, Id root, const std::vector<bool>& has_tensor,
                                                const std::function<std::string(std::size_t)>& describe_tensor);

}  // namespace lc::io::torch
