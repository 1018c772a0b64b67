#include "lightcone/io/checkpoints/torch/modules.h"

#include <set>
#include <vector>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/torch/paths.h"

namespace lc::io::torch {
namespace {

constexpr std::size_t kMostModules = 1u << 16, kDeepestModule = 64, kMostChildren = 1u << 16;
constexpr std::size_t kLongest = 256;        // one attribute has fewer bytes
constexpr std::size_t kMostAttributes = 64;  // one module has at most so many
constexpr std::size_t kMostItems = 32;       // a list has at most so many

class Finder {
 public:
  Finder(Values& v, std::string_view left_out) : v_(v), left_out_(left_out) {}
  std::map<std::string, PickledModule, std::less<>> found;

  // The root is a module, or a dict that has some.
  void from(Id root) {
    if (modules_of(root) != Values::kNoKey) return module(root, "", 0);
    if (!v_.is(root, Kind::Dict)) return;
    visit_children(v_, root, false, [&](const Child& c) {
      if (!c.name.empty() && modules_of(c.value) != Values::kNoKey)
        module(c.value, c.name == left_out_ ? std::string() : std::string(c.name), 0);
      return ++visited_ < kMostChildren;
    });
  }

 private:
  // The dict of the modules within a module; kNoKey for another value.
  Id modules_of(Id value) const {
    if (!v_.is(value, Kind::Object)) return Values::kNoKey;
    const Id state = v_.state(value);
    if (!v_.is(state, Kind::Dict) || !v_.is(v_.at(state, "_parameters"), Kind::Dict)) return Values::kNoKey;
    const Id modules = v_.at(state, "_modules");
    return v_.is(modules, Kind::Dict) ? modules : Values::kNoKey;
  }
  void module(Id value, const std::string& path, std::size_t depth) {
    const Id modules = modules_of(value);
    if (modules == Values::kNoKey || depth == kDeepestModule || found.size() == kMostModules ||
        !open_.insert(value).second)
      return;
    describe(value, path);
    visit_children(v_, modules, false, [&](const Child& c) {
      const std::string name = c.name.empty() ? str_cat(c.place) : std::string(c.name);
      module(c.value, path.empty() ? name : path + "." + name, depth + 1);
      return ++visited_ < kMostModules;
    });
    open_.erase(value);
  }
  void describe(Id value, const std::string& path) {
    PickledModule m;
    m.class_name = std::string(v_.text(v_[value].of).substr(0, kLongest));
    std::size_t bytes = 256 + path.size() + m.class_name.size(), seen = 0;
    visit_children(v_, value, true, [&](const Child& c) {
      std::string text = plain(c.value);
      if (!c.name.empty() && c.name.size() < kLongest && !text.empty()) {
        bytes += 128 + c.name.size() + text.size();
        m.attributes.emplace(c.name, std::move(text));
      }
      return ++seen < kMostAttributes;
    });
    v_.budget().take(bytes);
    found.emplace(path, std::move(m));
  }
  // A number, a truth value, a short text or a list of such as JSON; "" for anything else.
  std::string plain(Id id, bool within = false) const {
    switch (v_[id].kind) {
      case Kind::None: return "null";
      case Kind::Bool: return v_[id].integer ? "true" : "false";
      case Kind::Int: return str_cat(v_[id].integer);
      case Kind::Real: return str_cat(v_.real_number(id));
      case Kind::Text:
        return v_.text(id).size() < kLongest && v_.text(id).find_first_of("\"\\\n\r\t") == std::string_view::npos
                   ? str_cat("\"", v_.text(id), "\"")
                   : "";
      case Kind::List:
      case Kind::Tuple: return within ? "" : list(id);
      default: return "";
    }
  }
  std::string list(Id id) const {
    std::string s = "[";
    const auto items = v_.items(id);
    if (items.size() > kMostItems) return "";
    for (const Id item : items) {
      const std::string text = plain(item, true);
      if (text.empty()) return "";
      s += (s.size() > 1 ? ", " : "") + text;
    }
    return s + "]";
  }

  Values& v_;
  std::string_view left_out_;
  std::set<Id> open_;  // modules between the root and here
  std::size_t visited_ = 0;
};

}  // namespace

std::map<std::string, PickledModule, std::less<>> modules_below(Values& v, Id root, std::string_view left_out) {
  Finder f(v, left_out);
  f.from(root);
  return std::move(f.found);
}

}  // namespace lc::io::torch
