#include "lightcone/onnx/write/file.h"

#include <algorithm>

#include "lightcone/base/error.h"

namespace lc::onnx {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 31;  // what protocol buffers can be read up to
constexpr std::uint64_t kPage = 4096;                    // weights beside a file begin at multiples, to be mapped

// The version of the file format that came with an opset.
std::int64_t ir_version(int opset) {
  if (opset >= 26) return 13;
  return opset >= 25 ? 12 : opset >= 23 ? 11 : opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

std::uint64_t after(std::uint64_t at) { return (at + kPage - 1) / kPage * kPage; }

bool lies_beside(const OutTensor& t) { return t.size() >= kSmall; }

void with_bytes(const OutTensor& t, const std::function<void(std::span<const std::byte>)>& use) {
  if (t.make) use(t.make());
  else use(t.own.empty() ? t.view : std::span<const std::byte>(t.own));
}

ProtobufWriter description(const OutTensor& t) {
  ProtobufWriter w;
  for (const std::int64_t n : t.shape) w.integer(1, n);
  w.integer(2, element_number(t.dtype));
  w.text(8, t.name);
  return w;
}

ProtobufWriter entry(std::string_view key, std::string_view value) {
  ProtobufWriter w;
  w.text(1, key), w.text(2, value);
  return w;
}

// One initializer: what comes before its bytes, and how many bytes follow.
struct Piece {
  ProtobufWriter head;
  std::uint64_t bytes = 0;
};

Piece piece_of(const OutTensor& t, const std::string& beside, std::uint64_t& offset) {
  ProtobufWriter d = description(t);
  Piece p;
  if (!beside.empty() && lies_beside(t)) {
    offset = after(offset);
    d.message(13, entry("location", beside));
    d.message(13, entry("offset", str_cat(offset)));
    d.message(13, entry("length", str_cat(t.size())));
    d.integer(14, 1);
    offset += t.size();
    p.head.message(5, d);
    return p;
  }
  p.bytes = t.size();
  d.begin(9, p.bytes);
  p.head.begin(5, d.size() + p.bytes);
  p.head.append(d);
  return p;
}

}  // namespace

std::uint64_t bytes_of_weights(const OutGraph& g) {
  std::uint64_t n = 0;
  for (const OutTensor& t : g.initializers) n += t.size();
  return n;
}

void write_model(const OutGraph& g, const OnnxExportOptions& o, const std::string& beside, const Sink& sink) {
  const auto write = [&](const ProtobufWriter& w) { sink(std::as_bytes(std::span(w.str().data(), w.size()))); };
  const ProtobufWriter fields = graph_fields(g);
  std::vector<Piece> pieces;
  std::uint64_t size = fields.size(), offset = 0;
  for (const OutTensor& t : g.initializers) {
    pieces.push_back(piece_of(t, beside, offset));
    size += pieces.back().head.size() + pieces.back().bytes;
  }
  ProtobufWriter head, opset, tail;
  head.integer(1, ir_version(o.opset));
  head.text(2, "lightcone");
  opset.text(1, ""), opset.integer(2, o.opset);
  head.message(8, opset);
  for (const auto& [key, value] : o.metadata) tail.message(14, entry(key, value));
  head.begin(7, size);
  if (head.size() + size + tail.size() >= kMost)
    throw Error("export_onnx", str_cat("the file would have ", head.size() + size + tail.size(),
                                       " bytes, and an ONNX file has less than 2 GiB: its weights can lie beside it "
                                       "(OnnxExportOptions::WeightsIn::FileBeside)"));
  write(head), write(fields);
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    write(pieces[k].head);
    if (pieces[k].bytes > 0) with_bytes(g.initializers[k], sink);
  }
  write(tail);
}

void write_weights_beside(const OutGraph& g, const Sink& sink) {
  const std::vector<std::byte> zeros(kPage);
  std::uint64_t at = 0;
  for (const OutTensor& t : g.initializers) {
    if (!lies_beside(t)) continue;
    sink(std::span(zeros).first(after(at) - at));
    with_bytes(t, sink);
    at = after(at) + t.size();
  }
}

}  // namespace lc::onnx
