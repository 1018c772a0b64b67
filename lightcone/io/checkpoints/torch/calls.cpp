#include "lightcone/io/checkpoints/torch/calls.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lightcone/io/printable.h"
#include "lightcone/io/utf8.h"

namespace lc::io::torch {
namespace {

constexpr std::size_t kMostAxes = 64;

// Classes whose values are plain and have no tensors. They stay what they are: a name and arguments.
constexpr std::string_view kPlain[] = {
    "builtins.complex",
    "builtins.getattr",
    "builtins.range",
    "builtins.slice",
    "__builtin__.complex",
    "__builtin__.getattr",
    "__builtin__.slice",
    "datetime.date",
    "datetime.datetime",
    "datetime.time",
    "datetime.timedelta",
    "datetime.timezone",
    "decimal.Decimal",
    "fractions.Fraction",
    "functools.partial",
    "numpy.dtype",
    "numpy.random.__bit_generator_ctor",
    "numpy.random.__generator_ctor",
    "numpy.random.__randomstate_ctor",
    "numpy.random._pickle.__bit_generator_ctor",
    "numpy.random._pickle.__generator_ctor",
    "numpy.random._pickle.__randomstate_ctor",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.PurePath",
    "pathlib.PurePosixPath",
    "pathlib.PureWindowsPath",
    "pathlib.WindowsPath",
    "pathlib._local.Path",
    "pathlib._local.PosixPath",
    "pathlib._local.PurePath",
    "pathlib._local.PurePosixPath",
    "pathlib._local.PureWindowsPath",
    "pathlib._local.WindowsPath",
    "torch.device",
    "torch.serialization._get_layout",
    "types.SimpleNamespace",
    "uuid.UUID",
};

}  // namespace

struct Calls::Row {
  std::string_view name;
  Function function;
};

std::span<const Calls::Row> Calls::rows() {
  static constexpr Row kRows[] = {
      {"__builtin__.bytearray", &Calls::bytes},
      {"__builtin__.bytes", &Calls::bytes},
      {"__builtin__.dict", &Calls::dict},
      {"__builtin__.frozenset", &Calls::set},
      {"__builtin__.list", &Calls::list},
      {"__builtin__.set", &Calls::set},
      {"__builtin__.tuple", &Calls::tuple},
      {"_codecs.encode", &Calls::bytes},
      {"builtins.bytearray", &Calls::bytes},
      {"builtins.bytes", &Calls::bytes},
      {"builtins.dict", &Calls::dict},
      {"builtins.frozenset", &Calls::set},
      {"builtins.list", &Calls::list},
      {"builtins.set", &Calls::set},
      {"builtins.tuple", &Calls::tuple},
      {"collections.Counter", &Calls::dict},
      {"collections.OrderedDict", &Calls::dict},
      {"collections.defaultdict", &Calls::empty_dict},
      {"collections.deque", &Calls::list},
      {"copy_reg.__newobj__", &Calls::new_object},
      {"copy_reg._reconstructor", &Calls::reconstructed},
      {"copyreg.__newobj__", &Calls::new_object},
      {"copyreg._reconstructor", &Calls::reconstructed},
      {"numpy._core.multiarray._reconstruct", &Calls::numpy_array},
      {"numpy._core.multiarray.scalar", &Calls::numpy_scalar},
      {"numpy.core.multiarray._reconstruct", &Calls::numpy_array},
      {"numpy.core.multiarray.scalar", &Calls::numpy_scalar},
      {"torch.Size", &Calls::tuple},
      {"torch._tensor._rebuild_from_type", &Calls::subclass},
      {"torch._tensor._rebuild_from_type_v2", &Calls::subclass},
      {"torch._utils._rebuild_parameter", &Calls::first},
      {"torch._utils._rebuild_parameter_with_state", &Calls::first},
      {"torch._utils._rebuild_qtensor", &Calls::tensor},
      {"torch._utils._rebuild_tensor", &Calls::tensor},
      {"torch._utils._rebuild_tensor_v2", &Calls::tensor},
      {"torch._utils._rebuild_tensor_v3", &Calls::tensor_of_dtype},
      {"torch.jit._pickle.build_boollist", &Calls::first},
      {"torch.jit._pickle.build_doublelist", &Calls::first},
      {"torch.jit._pickle.build_intlist", &Calls::first},
      {"torch.jit._pickle.build_tensorlist", &Calls::first},
      {"torch.jit._pickle.restore_type_tag", &Calls::first},
      {"torch.nn.parameter.Parameter", &Calls::first},
  };
  return kRows;
}

const Calls::Row* Calls::row(std::string_view name) const {
  const auto all = rows();
  const auto at = std::ranges::lower_bound(all, name, {}, &Row::name);
  return at != all.end() && at->name == name ? &*at : nullptr;
}

void Calls::need(std::string_view name, bool fits) {
  if (!fits) v_.wrong(str_cat("damaged: its pickle calls ", in_quotes(name), " with arguments that it does not take"));
}

Id Calls::call(Id function, Id arguments) {
  if (!v_.is(function, Kind::Global)) v_.wrong("damaged: its pickle calls something that is no function");
  if (!v_.is(arguments, Kind::Tuple)) v_.wrong("damaged: its pickle calls a function without a tuple of arguments");
  const std::string_view name = v_.text(function);
  if (const Row* known = row(name)) return (this->*known->function)(name, std::span(v_.items(arguments)));
  if (std::ranges::find(kPlain, name) != std::end(kPlain)) return v_.object(function, arguments);
  if (name.starts_with("torch._utils._rebuild_"))
    v_.wrong(str_cat("a tensor that ", in_quotes(name),
                     " makes is not read: only dense tensors with values are; save it as one"));
  v_.wrong(str_cat("its pickle calls ", in_quotes(name),
                   ", which could be any program. It was not run, and the file is not read: only functions that make "
                   "tensors, containers and plain values may be called. Where the file is your own, save the model's "
                   "state_dict() alone"));
}

Id Calls::make(Id of, Id arguments) {
  if (!v_.is(of, Kind::Global)) v_.wrong("damaged: its pickle makes an object of something that is no class");
  return row(v_.text(of)) ? call(of, arguments) : v_.object(of, arguments);
}

void Calls::build(Id object, Id state) {
  if (v_.is(object, Kind::Object)) {
    const std::string_view of = v_.text(v_[object].of);
    v_.set_state(object, state);
    if (of == "numpy.ndarray" && v_.is(state, Kind::Tuple)) fill_array(object, v_.items(state));
    return;
  }
  // attributes of a tensor or a container, such as the versions of a state dict's layers
  const Kind k = v_[object].kind;
  if (k != Kind::Dict && k != Kind::List && k != Kind::Set && k != Kind::Tensor && k != Kind::Tuple)
    v_.wrong("damaged: its pickle gives a state to something that has none");
}

Id Calls::persistent(Id id) {
  const auto a = v_.items(id);
  if (!v_.is(id, Kind::Tuple) || a.size() < 2 || !v_.is(a[1], Kind::Global))
    v_.wrong("its pickle refers to no storage");
  if (v_.text(a[0]) == "module") return a[1];  // old files have a class and the text of its program
  std::string_view type = v_.text(a[1]);
  type = type.substr(std::min(type.size(), type.rfind('.') + 1));
  const std::int64_t n = a.size() >= 5 ? v_.whole(a[4]).value_or(-1) : -1;
  if (v_.text(a[0]) != "storage" || a.size() > 6 || n < 0 || !v_.is(a[2], Kind::Text))
    v_.wrong("damaged: its pickle refers to a storage in a way that is not known");
  StorageRecord s{.type = type_of_storage(type), .key = v_.text(a[2]), .elements = n};
  if (!s.type || !v_.text(a[1]).starts_with("torch."))
    v_.wrong(str_cat("a storage of the type ", in_quotes(v_.text(a[1])), " is not read"));
  if (a.size() == 6 && a[5] != Values::kNone) {  // a view of another storage: its key, where it begins, its size
    const auto view = v_.items(a[5]);
    const auto first = view.size() == 3 ? v_.whole(view[1]) : std::nullopt,
               size = view.size() == 3 ? v_.whole(view[2]) : std::nullopt;
    if (!first || !size || *first < 0 || *size < 0 || *first > n || *size > n - *first)
      v_.wrong("damaged: a view of a storage lies outside of it");
    s.first = *first, s.elements = *size;
  }
  return v_.storage(s);
}

// ---- containers -------------------------------------------------------------------------------------------------

Id Calls::copied(Kind kind, std::string_view name, std::span<const Id> a) {
  if (a.empty()) return v_.container(kind, {});
  const Kind from = v_[a[0]].kind;
  need(name, a.size() <= 2 && (from == Kind::List || from == Kind::Tuple || from == Kind::Set));
  return v_.container(kind, v_.items(a[0]));
}
Id Calls::list(std::string_view name, std::span<const Id> a) { return copied(Kind::List, name, a); }
Id Calls::set(std::string_view name, std::span<const Id> a) { return copied(Kind::Set, name, a); }
Id Calls::tuple(std::string_view name, std::span<const Id> a) { return copied(Kind::Tuple, name, a); }

Id Calls::empty_dict(std::string_view name, std::span<const Id> a) {
  need(name, a.size() <= 1);  // what makes missing values
  return v_.container(Kind::Dict);
}

// From nothing, another dict, or a list of pairs, as Python 2 wrote it.
Id Calls::dict(std::string_view name, std::span<const Id> a) {
  need(name, a.size() <= 1);
  if (a.empty()) return v_.container(Kind::Dict);
  const auto all = v_.items(a[0]);
  if (v_.is(a[0], Kind::Dict)) return v_.container(Kind::Dict, all);
  need(name, v_.is(a[0], Kind::List) || v_.is(a[0], Kind::Tuple));
  const Id made = v_.container(Kind::Dict);
  for (Id pair : all) {
    const auto both = v_.items(pair);
    need(name, both.size() == 2);
    v_.push(made, both[0]);
    v_.push(made, both[1]);
  }
  return made;
}

// Texts of the code points 0 to 255 stand for bytes in protocols that have no bytes.
Id Calls::bytes(std::string_view name, std::span<const Id> a) {
  if (a.empty()) return v_.text(Kind::Bytes, "");
  if (v_.is(a[0], Kind::Bytes)) return a[0];
  need(name, a.size() == 2 && v_.is(a[0], Kind::Text) && v_.is(a[1], Kind::Text));
  const std::string_view from = v_.text(a[0]), code = v_.text(a[1]);
  need(name, code == "latin1" || code == "latin-1");
  std::string made;
  v_.budget().take(from.size());
  made.reserve(from.size());
  for (std::size_t i = 0, n = 0; i < from.size(); i += n) {
    const std::uint32_t c = utf8_decode(from, i, &n);
    need(name, c < 256);
    made += static_cast<char>(c);
  }
  return v_.text(Kind::Bytes, v_.keep(std::move(made)));
}

Id Calls::first(std::string_view name, std::span<const Id> a) {
  need(name, !a.empty());
  return a[0];
}

// ---- tensors ----------------------------------------------------------------------------------------------------

std::vector<std::int64_t> Calls::extents(std::string_view name, Id tuple) {
  const auto all = v_.items(tuple);
  need(name, (v_.is(tuple, Kind::Tuple) || v_.is(tuple, Kind::List)) && all.size() <= kMostAxes);
  std::vector<std::int64_t> to;
  for (Id item : all) {
    const auto n = v_.whole(item);
    need(name, n && *n >= 0);
    to.push_back(*n);
  }
  return to;
}

// (storage, offset, size, stride, ...)
Id Calls::strided(std::string_view name, std::span<const Id> a, const ElementType* type) {
  const auto offset = v_.whole(a[1]);
  need(name, offset && *offset >= 0);
  TensorRecord t{type, static_cast<std::uint32_t>(v_[a[0]].integer), *offset, extents(name, a[2]), extents(name, a[3])};
  need(name, t.shape.size() == t.strides.size());
  return v_.tensor(std::move(t));
}

Id Calls::tensor(std::string_view name, std::span<const Id> a) {
  need(name, a.size() >= 4 && a.size() <= 7 && v_.is(a[0], Kind::Storage));
  for (const char* flag : {"conj", "neg"})
    if (a.size() == 7 && v_.is(a[6], Kind::Dict) && v_.at(a[6], flag) == Values::kTrue)
      v_.wrong(str_cat("a tensor with the flag '", flag, "' is not read: save its resolve_", flag, "()"));
  return strided(name, a, v_.storages[static_cast<std::size_t>(v_[a[0]].integer)].type);
}

// (storage, offset, size, stride, requires_grad, backward_hooks, dtype, metadata)
Id Calls::tensor_of_dtype(std::string_view name, std::span<const Id> a) {
  need(name, a.size() >= 7 && a.size() <= 8 && v_.is(a[0], Kind::Storage) && v_.is(a[6], Kind::Global));
  const std::string_view full = v_.text(a[6]);
  const ElementType* type = full.starts_with("torch.") ? type_of_dtype(full.substr(6)) : nullptr;
  if (!type) v_.wrong(str_cat("a tensor of the type ", in_quotes(full), " is not read"));
  return strided(name, a, type);
}

// (function, class, arguments, state): a tensor of a class of its own, or one that has attributes.
Id Calls::subclass(std::string_view name, std::span<const Id> a) {
  need(name, a.size() >= 3 && v_.is(a[0], Kind::Global) && v_.is(a[2], Kind::Tuple));
  const std::string_view by = v_.text(a[0]);
  need(name, by.starts_with("torch._utils._rebuild_"));  // so that it cannot call itself
  return call(a[0], a[2]);
}

// ---- objects ----------------------------------------------------------------------------------------------------

// (class, base, state of the base): how protocols before 2 make objects.
Id Calls::reconstructed(std::string_view name, std::span<const Id> a) {
  need(name, a.size() == 3 && v_.is(a[0], Kind::Global));
  const Id made = v_.object(a[0], Values::kEmptyTuple);
  const auto all = v_.items(a[2]);
  if (v_.is(a[2], Kind::Dict))
    for (Id item : all) v_.push(made, item);
  if (v_.is(a[2], Kind::List) || v_.is(a[2], Kind::Tuple))
    for (Id item : all) v_.push(made, Values::kNoKey), v_.push(made, item);
  return made;
}

Id Calls::new_object(std::string_view name, std::span<const Id> a) {
  need(name, !a.empty() && v_.is(a[0], Kind::Global) && !row(v_.text(a[0])));
  return v_.object(a[0], v_.container(Kind::Tuple, a.subspan(1)));
}

// ---- NumPy ------------------------------------------------------------------------------------------------------

Id Calls::numpy_array(std::string_view name, std::span<const Id> a) {
  need(name, a.size() == 3 && v_.is(a[0], Kind::Global));
  return v_.object(a[0], Values::kEmptyTuple);  // BUILD fills it
}

// dtype('f8', False, True) with the state (3, '<', ...); no type for texts, records and objects.
Calls::NumpyType Calls::numpy_type(Id dtype) const {
  if (!v_.is(dtype, Kind::Object) || v_.text(v_[dtype].of) != "numpy.dtype") return {};
  const auto arguments = v_.items(v_.arguments(dtype));
  const auto state = v_.items(v_.state(dtype));
  if (arguments.empty()) return {};
  constexpr std::pair<std::string_view, DType> kCodes[] = {{"f8", DType::F64}, {"f4", DType::F32}, {"f2", DType::F16},
                                                           {"i8", DType::I64}, {"i4", DType::I32}, {"i2", DType::I16},
                                                           {"i1", DType::I8},  {"u8", DType::U64}, {"u4", DType::U32},
                                                           {"u2", DType::U16}, {"u1", DType::U8},  {"b1", DType::Bool}};
  const std::string_view code = v_.text(arguments[0]);
  NumpyType t;
  for (const auto& [known, type] : kCodes)
    if (code == known) t.type = type_of(type);
  if (code == "c8") t.type = type_of_dtype("complex64");
  if (code == "c16") t.type = type_of_dtype("complex128");
  t.big_endian = state.size() >= 2 && v_.text(state[1]) == ">";
  return t;
}

// (dtype, bytes)
Id Calls::numpy_scalar(std::string_view name, std::span<const Id> a) {
  need(name, a.size() == 2);
  const NumpyType t = numpy_type(a[0]);
  const std::string_view bytes = v_.text(a[1]);
  if (!t.type || !t.type->dtype)
    return v_.object(v_.is(a[0], Kind::Object) ? v_[a[0]].of : a[0], v_.container(Kind::Tuple, a));
  need(name, bytes.size() == t.type->bytes);
  std::byte raw[8] = {};
  std::memcpy(raw, bytes.data(), bytes.size());
  if (t.big_endian) std::reverse(raw, raw + bytes.size());
  const DType type = *t.type->dtype;
  if (type == DType::I64 || type == DType::U64) return v_.integer(std::bit_cast<std::int64_t>(raw));
  const double value = load_f64(raw, type, 0);
  if (type == DType::Bool) return value != 0 ? Values::kTrue : Values::kFalse;
  return is_float(type) ? v_.real(value) : v_.integer(static_cast<std::int64_t>(value));
}

// (1, shape, dtype, first axis fastest, bytes). An array of objects has a list, and remains an object.
void Calls::fill_array(Id array, std::span<const Id> state) {
  constexpr std::string_view kName = "numpy.ndarray";
  need(kName, state.size() == 5);
  const NumpyType t = numpy_type(state[2]);
  if (!t.type || (!v_.is(state[4], Kind::Bytes) && !v_.is(state[4], Kind::Text))) return;
  const std::string_view bytes = v_.text(state[4]);
  const Id storage = v_.storage({.type = t.type,
                                 .key = {},
                                 .elements = static_cast<std::int64_t>(bytes.size() / t.type->bytes),
                                 .in_pickle = std::as_bytes(std::span(bytes)),
                                 .is_in_pickle = true,
                                 .big_endian = t.big_endian});
  TensorRecord r{t.type, static_cast<std::uint32_t>(v_[storage].integer), 0, extents(kName, state[1]), {}};
  r.strides.resize(r.shape.size());
  const std::size_t rank = r.shape.size();
  std::int64_t step = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = state[3] == Values::kTrue ? i : rank - 1 - i;
    r.strides[axis] = step;
    need(kName, !__builtin_mul_overflow(step, std::max<std::int64_t>(r.shape[axis], 1), &step));
  }
  const Id made = v_.tensor(std::move(r));
  v_[array] = v_[made];
}

}  // namespace lc::io::torch
