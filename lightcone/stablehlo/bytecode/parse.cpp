// Reads the operations of a file into a module in memory.
#include <algorithm>

#include "lightcone/base/error.h"
#include "lightcone/stablehlo/bytecode/values.h"
#include "lightcone/stablehlo/bytecode/vhlo.h"

namespace lc::stablehlo {
namespace {

constexpr int kDeepestRegion = 100;
constexpr std::string_view kSharding = "sdy";                     // the dialect that distributes values over devices
constexpr std::string_view kCast = "unrealized_conversion_cast";  // wraps its operations, without an effect
constexpr std::uint64_t kSectionsVersion = 2, kUseOrders = 3,
                        kFewerLocations = 4;  // versions from which on isolated regions have sections of their own, ...

// Bits of the parts that an operation has in the file.
enum : std::uint8_t {
  kAttributes = 1,
  kResults = 2,
  kOperands = 4,
  kSuccessors = 8,
  kRegions = 16,
  kOrders = 32,
  kHasProperties = 64
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes)
      : file_(bytes), allowance_(bytes.size()), values_(file_, allowance_) {}
  Module run();

 private:
  // The values that operations of a region can refer to: those of all enclosing regions up to an isolated one.
  struct Scope {
    std::vector<ValueId> values;
    std::vector<std::size_t> next;  // by region: the number of its next value
  };
  // An operation whose regions have not been read yet.
  struct Header {
    const File::OperationName* name = nullptr;
    std::size_t at = 0;
    std::vector<NumberedAttribute> attributes = {};
    std::vector<ValueId> operands = {}, results = {};
    std::size_t first_result = 0;  // number of its first result; the others follow
    std::size_t regions = 0;
    bool isolated = false;
  };

  Header header(Cursor& c);
  void properties(Cursor& c, Header& h);
  void results(Cursor& c, Header& h);
  void operands(Cursor& c, Header& h);
  void skip_use_orders(Cursor& c, std::size_t values);

  // Reads the regions of an operation, each with `body`, which gets the number of operations.
  template <class Body>
  void regions(Cursor& c, const Header& h, const Body& body);
  template <class Body>
  void region(Cursor& c, bool isolated, const Body& body);
  std::size_t block_header(Cursor& c, Block& b);
  void block_arguments(Cursor& c, Block& b);

  void module(Cursor& c);
  void function(Cursor& c);
  void operations(Cursor& c, std::size_t count, Block& b, std::string_view ends);
  Operation operation(Cursor& c, std::string_view ends);
  void set_function_attributes(Function& f, const Header& h);

  std::size_t new_number(std::size_t at);  // numbers a value that the innermost region defines
  std::size_t attribute_index(Cursor& c) { return c.index(file_.attributes.size(), "attribute"); }

  File file_;
  Allowance allowance_;
  Values values_;
  Module m_;
  std::vector<Scope> scopes_;
  int depth_ = 0;
};

Place place(std::size_t byte) { return {0, static_cast<int>(std::min<std::size_t>(byte, INT32_MAX))}; }

Module Reader::run() {
  Cursor c = file_.cursor(file_.ir);
  Block top;
  if (block_header(c, top) != 1) c.fail("a file of one module is expected");
  module(c);
  if (!c.done()) c.fail("something follows the module");
  return std::move(m_);
}

void Reader::module(Cursor& c) {
  Header h = header(c);
  if (h.name->dialect != "builtin" || h.name->name != "module") Cursor::fail_at(h.at, "a module is expected");
  for (const auto& [name, index] : h.attributes) {
    Attribute a = values_.attribute(index, h.at);
    if (name == "sym_name") m_.name = a.text;
    else m_.attributes.emplace_back(name, std::move(a));
  }
  regions(c, h, [&](Cursor& inner, std::size_t count, Block&) {
    for (; count > 0; --count) function(inner);
  });
}

// ---- functions ------------------------------------------------------------------------------------

void Reader::function(Cursor& c) {
  const Header h = header(c);
  if (!h.results.empty() || !h.operands.empty())
    Cursor::fail_at(h.at, "a function has operands or results as an operation has");
  if (h.name->dialect == kSharding && h.regions == 0) return;  // a mesh
  if (h.name->dialect != "vhlo" || without_version(h.name->name) != "func")
    Cursor::fail_at(h.at, str_cat("a function is expected, and there is ", h.name->dialect, ".", h.name->name));
  Function f;
  f.at = place(h.at);
  set_function_attributes(f, h);
  regions(c, h, [&](Cursor& inner, std::size_t count, Block& b) {
    for (std::size_t k = 0; k < b.arguments.size(); ++k)  // named as in text; a file has no names of values
      m_.values[b.arguments[k]].name = str_cat("arg", k);
    operations(inner, count, b, "func.return");
    f.body = std::move(b);
  });
  if (f.argument_attributes.size() != f.body.arguments.size()) f.argument_attributes.clear();
  if (f.result_attributes.size() != f.results.size()) f.result_attributes.clear();
  m_.functions.push_back(std::move(f));
}

void Reader::set_function_attributes(Function& f, const Header& h) {
  const auto lists = [](const Attribute& a) {
    std::vector<AttributeList> all;
    for (const Attribute& each : a.list) all.push_back(each.fields);
    if (std::ranges::all_of(all, &AttributeList::empty)) all.clear();
    return all;
  };
  f.name.clear();
  for (const auto& [name, index] : h.attributes) {
    if (name == "function_type") {
      f.results = values_.results_of(index, h.at);
      continue;
    }
    const Attribute a = values_.attribute(index, h.at);
    if (name == "sym_name") f.name = a.text;
    else if (name == "sym_visibility") f.is_public = a.text != "private";
    else if (name == "arg_attrs") f.argument_attributes = lists(a);
    else if (name == "res_attrs") f.result_attributes = lists(a);
  }
  if (f.name.empty()) Cursor::fail_at(h.at, "a function has no name");
}

// ---- operations -----------------------------------------------------------------------------------

void Reader::operations(Cursor& c, std::size_t count, Block& b, std::string_view ends) {
  for (; count > 0; --count) b.operations.push_back(operation(c, ends));
}

// Returns the name of an operation. VHLO has a single operation that ends blocks; in this block it is called `ends`.
std::string name_of(const File::OperationName& n, std::string_view ends) {
  if (n.dialect != "vhlo") return str_cat(n.dialect, ".", n.name);
  const std::string_view name = without_version(n.name);
  return name == "return" ? std::string(ends) : str_cat(name == "call" ? "func." : "stablehlo.", name);
}

Operation Reader::operation(Cursor& c, std::string_view ends) {
  Header h = header(c);
  if (h.name->dialect != "vhlo" && h.name->dialect != kSharding && h.name->name != kCast)
    Cursor::fail_at(h.at, str_cat("operations of the dialect '", h.name->dialect, "' are not read (", h.name->name,
                                  "): write the module as a portable artifact"));
  Operation op;
  op.at = place(h.at);
  op.name = name_of(*h.name, ends);
  op.operands = std::move(h.operands), op.results = std::move(h.results);
  for (const auto& [attribute, index] : h.attributes)
    op.attributes.emplace_back(attribute, values_.attribute(index, h.at));
  translate_attributes(op);
  regions(c, h, [&](Cursor& inner, std::size_t count, Block& b) {
    operations(inner, count, b, "stablehlo.return");
    op.regions.push_back(std::move(b));
  });
  std::ranges::copy(op.results, scopes_.back().values.begin() + static_cast<std::ptrdiff_t>(h.first_result));
  if (op.regions.size() != h.regions) Cursor::fail_at(h.at, str_cat(op.name, " has an empty region"));
  return op;
}

Reader::Header Reader::header(Cursor& c) {
  Header h;
  h.at = c.at();
  allowance_.pay(sizeof(Operation), h.at);
  h.name = &file_.operations[c.index(file_.operations.size(), "name of an operation")];
  const std::uint8_t has = c.byte();
  attribute_index(c);       // its location in a text
  if (has & kAttributes) {  // before version 5 all attributes, later the discardable ones
    const std::size_t at = c.at();
    h.attributes = values_.fields_of(attribute_index(c), at);
  }
  if (has & kHasProperties) properties(c, h);
  if (has & kResults) results(c, h);
  if (has & kOperands) operands(c, h);
  if (has & kSuccessors) c.fail("branches between blocks are not read");
  if (has & kOrders) skip_use_orders(c, h.results.size());
  if (has & kRegions) {
    const auto [n, isolated] = c.flagged_varint();
    if (n > c.left()) c.fail(str_cat(n, " regions are said to follow"));
    h.regions = static_cast<std::size_t>(n), h.isolated = isolated;
  }
  return h;
}

void Reader::properties(Cursor& c, Header& h) {
  const Stretch s = file_.properties[c.index(file_.properties.size(), "set of properties")];
  Cursor p = file_.cursor(s);
  if (h.name->dialect == "builtin" && h.name->name == "module") {  // both may be missing
    for (const char* name : {"sym_name", "sym_visibility"})
      if (const auto [index, present] = p.flagged_varint(); present)
        h.attributes.push_back({name, p.checked(index, file_.attributes.size(), "attribute")});
    return;
  }
  if (h.name->dialect != "vhlo") return;
  const std::vector<std::string_view> names = properties_of(h.name->name);
  if (names.empty() && !p.done()) Cursor::fail_at(h.at, str_cat("the operation vhlo.", h.name->name, " is not known"));
  for (const std::string_view name : names) h.attributes.push_back({name, attribute_index(p)});
  if (!p.done()) p.fail(str_cat("vhlo.", h.name->name, " has more properties than are known"));
}

// Results get their numbers before operands are read and before regions get theirs, but are visible in neither.
void Reader::results(Cursor& c, Header& h) {
  for (std::size_t left = c.count("results"); left > 0; --left) {
    const std::size_t at = c.at();
    const std::size_t number = new_number(at);
    if (h.results.empty()) h.first_result = number;
    h.results.push_back(m_.value(values_.type(c.index(file_.types.size(), "type"), at)));
  }
}

void Reader::operands(Cursor& c, Header& h) {
  for (std::size_t left = c.count("operands"); left > 0; --left) {
    if (scopes_.empty()) c.fail("an operation outside of all regions has operands");
    const std::size_t at = c.at();
    const ValueId v = scopes_.back().values[c.index(scopes_.back().values.size(), "value")];
    if (v < 0) Cursor::fail_at(at, "a value is used before it is defined");
    allowance_.pay(sizeof v, at);
    h.operands.push_back(v);
  }
}

std::size_t Reader::new_number(std::size_t at) {
  if (scopes_.empty()) Cursor::fail_at(at, "an operation outside of all regions has results");
  allowance_.pay(sizeof(Value), at);
  Scope& s = scopes_.back();
  if (s.next.back() >= s.values.size()) Cursor::fail_at(at, "a region has more values than it says");
  return s.next.back()++;
}

// Skips the order in which a value's uses were in memory, which has no meaning.
void Reader::skip_use_orders(Cursor& c, std::size_t values) {
  const std::size_t n = values > 1 ? c.count("orders of uses") : 1;
  for (std::size_t k = 0; k < n; ++k) {
    if (values > 1) c.varint();
    const std::uint64_t uses = c.flagged_varint().first;
    if (uses > c.left()) c.fail(str_cat(uses, " uses are said to follow"));
    for (std::uint64_t u = 0; u < uses; ++u) c.varint();
  }
}

// ---- regions --------------------------------------------------------------------------------------

template <class Body>
void Reader::regions(Cursor& c, const Header& h, const Body& body) {
  if (h.regions == 0) return;
  if (++depth_ > kDeepestRegion) c.fail(str_cat("regions are nested more than ", kDeepestRegion, " deep"));
  if (h.isolated && file_.version >= kSectionsVersion) {
    const Section s = read_section(c);
    if (s.id != kOperationSection) c.fail("regions are expected");
    Cursor inner = file_.cursor(s.data);
    for (std::size_t k = 0; k < h.regions; ++k) region(inner, true, body);
    if (!inner.done()) inner.fail("something follows the regions of an operation");
  } else {
    for (std::size_t k = 0; k < h.regions; ++k) region(c, h.isolated, body);
  }
  --depth_;
}

template <class Body>
void Reader::region(Cursor& c, bool isolated, const Body& body) {
  const std::uint64_t blocks = c.varint();
  if (blocks == 0) return;
  if (blocks > 1) c.fail("a region of several blocks is not read");
  const std::size_t values = c.count("values");
  allowance_.pay(values * sizeof(ValueId), c.at());
  if (isolated || scopes_.empty()) scopes_.emplace_back();
  const std::size_t before = scopes_.back().values.size();
  scopes_.back().next.push_back(before);
  scopes_.back().values.resize(before + values, -1);

  Block b;
  const std::size_t count = block_header(c, b);
  body(c, count, b);

  scopes_.back().values.resize(before);
  scopes_.back().next.pop_back();
  if (scopes_.back().next.empty()) scopes_.pop_back();
}

// Returns the number of operations.
std::size_t Reader::block_header(Cursor& c, Block& b) {
  const auto [count, has_arguments] = c.flagged_varint();
  if (count > c.left()) c.fail(str_cat(count, " operations are said to follow, and ", c.left(), " bytes do"));
  if (has_arguments) block_arguments(c, b);
  return static_cast<std::size_t>(count);
}

void Reader::block_arguments(Cursor& c, Block& b) {
  for (std::size_t left = c.count("arguments"); left > 0; --left) {
    const std::size_t at = c.at();
    const auto [type, located] = file_.version >= kFewerLocations ? c.flagged_varint() : std::pair(c.varint(), true);
    b.arguments.push_back(m_.value(values_.type(c.checked(type, file_.types.size(), "type"), at)));
    const std::size_t number = new_number(at);
    scopes_.back().values[number] = b.arguments.back();
    if (located) attribute_index(c);
  }
  if (file_.version >= kUseOrders && c.byte() != 0) skip_use_orders(c, b.arguments.size());
}

}  // namespace

Module parse_bytecode(std::span<const std::byte> bytes) { return Reader(bytes).run(); }

}  // namespace lc::stablehlo
