// Reads what torch.save() writes (.pt, .pth, .bin, .th, .ckpt), in its zip form and in the one of PyTorch before 1.6,
// as torch.load() does on a CPU, and runs nothing.
//
// The pickle within is followed by a machine that knows tensors and containers. Objects of classes are kept as the name
// of the class and their state; calls of functions that are not known to make tensors, containers or plain values are
// an Error that names the function (calls.h has the rule).
//
// Names are paths with dots: keys of dicts, places in lists, attributes of objects. A module (an object with
// _parameters and _modules) gives the names of its state_dict(). One level is left out of all names below it: where
// exactly one of the keys state_dict, model_state_dict, model, module, net, network, params, params_ema, ema,
// model_ema, generator and weights of the outermost dict has tensors, that key. Other keys (optimizer, ...) stay.
// Strided tensors are made contiguous, words of another byte order reversed; both are copies, as are tensors that are
// not aligned to their elements. Anything else is a view of the file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/core/dtype.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/pickled_module.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

// A tensor in row-major order.
struct TorchTensor {
  std::vector<std::int64_t> shape;
  std::string_view type;       // as safetensors names it: "F32", "BF16", "C64"; static
  std::optional<DType> dtype;  // nullopt: no graph reads it (complex numbers, quantised ones, 8-bit floats of others)
  std::span<const std::byte> bytes;
};

struct TorchFile {
  std::vector<std::pair<std::string, TorchTensor>> tensors;  // by name
  // Plain values near the root, by path: text as it is, everything else as JSON, objects as "<class>".
  std::map<std::string, std::string> metadata;
  std::map<std::string, PickledModule, std::less<>> modules;  // what a pickled model consists of, by path
  std::vector<std::shared_ptr<const void>> owners;            // they hold bytes that are not the file's
};

// True for both forms. It looks at the first and the last bytes only.
bool looks_like_torch(std::span<const std::byte> file);
// Throws Error for a damaged file, for one whose pickle calls a function that is not known, and for one that needs more
// memory than the budget has. The tensors refer to the file.
TorchFile read_torch(const MappedFile& file, Budget& budget);

}  // namespace lc::io
