// What classifiers that go on learning share: the order of their classes, and the layers that adapters are for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lc {

// The classes in the order of a head with these labels, or nothing if it is one for other classes. A head whose classes
// have no names (LABEL_0, ...) is one for "0", "1", ...
std::vector<std::string> classes_in_order_of(const std::vector<std::string>& labels,
                                             std::span<const std::string> classes);
// True if `target` is the name of a module or its last parts, as peft compares them.
bool names_module(std::string_view target, std::string_view module);

}  // namespace lc
