#include "options.h"

#include <cstdint>

#include "objects.h"

namespace lc::backends::pjrt::api {
namespace {

// Reads the fields of a message in the wire format of protocol buffers.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    number = tag >> 3, value = 0, bytes = {};
    switch (tag & 7) {
      case 0: value = varint(); break;
      case 1: bytes = take(8); break;
      case 2: bytes = take(varint()); break;
      case 5: bytes = take(4); break;
      default: invalid("the compile options are no CompileOptionsProto");
    }
    return true;
  }
  std::uint64_t number = 0, value = 0;
  std::string_view bytes;

 private:
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      v |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return v;
    }
    invalid("the compile options are no CompileOptionsProto");
  }
  std::string_view take(std::uint64_t n) {
    if (n > rest_.size()) invalid("the compile options end too early");
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(n));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest_;
};

constexpr std::uint64_t kBuildOptions = 3, kReplicas = 4, kPartitions = 5;

}  // namespace

void check_options(std::string_view proto) {
  for (Fields all(proto); all.next();) {
    if (all.number != kBuildOptions) continue;
    for (Fields build(all.bytes); build.next();)
      if ((build.number == kReplicas || build.number == kPartitions) && build.value > 1)
        unimplemented(str_cat("a program of ", build.value, build.number == kReplicas ? " replicas" : " partitions",
                              " needs as many devices, and there is one"));
  }
}

}  // namespace lc::backends::pjrt::api
