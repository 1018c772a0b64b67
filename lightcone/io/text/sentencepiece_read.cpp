// Reads the messages of sentencepiece_model.proto.
#include <algorithm>
#include <limits>
#include <span>

#include "lightcone/io/printable.h"
#include "lightcone/io/protobuf.h"
#include "lightcone/io/text/sentencepiece.h"
#include "lightcone/io/text/tokenizer_kinds.h"

namespace lc {
namespace {

using Type = Vocabulary::Type;

// The fields of a message of ModelProto.
struct ModelFields : ProtobufFields {
  ModelFields(std::span<const std::byte> message, const std::string& path)
      : ProtobufFields(message, "tokenizer", path, "not a SentencePiece model, or a damaged one") {}
  bool flag() const { return integer() != 0; }
  std::string_view characters() const { return {reinterpret_cast<const char*>(bytes().data()), bytes().size()}; }
};

class ModelReader {
 public:
  ModelReader(const MappedFile& f, Budget& budget) : path_(f.path()), budget_(budget) {
    budget.parsed(f.bytes().size());
    for (ModelFields p(f.bytes(), path_); p.next();) {
      if (p.field() == 1) piece(p.bytes());
      else if (p.field() == 2) trainer(p.bytes());
      else if (p.field() == 3) rules(p.bytes(), m_.rules);
      else if (p.field() == 5) rules(p.bytes(), m_.back);
      else if (p.field() == 4) p.bytes();  // test cases of the library
      else p.unknown("the model");
    }
  }
  std::shared_ptr<const Tokenizer> tokenizer();

 private:
  void piece(std::span<const std::byte> bytes);
  void trainer(std::span<const std::byte> bytes);
  void rules(std::span<const std::byte> bytes, SentencePieceRules& r);
  int control(std::string_view name) const {
    for (std::size_t i = 0; i < v_.pieces.size(); ++i)
      if (v_.types[i] == Type::Control && v_.pieces[i] == name) return static_cast<int>(i);
    return -1;
  }
  const std::string& path_;
  Budget& budget_;
  Vocabulary v_;
  SentencePieceModel m_;
  std::string bos_ = "<s>", eos_ = "</s>";
};

void ModelReader::piece(std::span<const std::byte> bytes) {
  std::string_view text;
  float score = 0;
  std::int64_t type = 1;
  for (ModelFields p(bytes, path_); p.next();) {
    if (p.field() == 1) text = p.text("a piece");
    else if (p.field() == 2) score = p.f32();
    else if (p.field() == 3) type = p.integer();
    else p.unknown("a piece");
  }
  if (text.empty()) throw file_error("tokenizer", path_, "the piece ", v_.pieces.size(), " is empty");
  static constexpr Type kTypes[] = {Type::Normal,      Type::Unknown, Type::Control,
                                    Type::UserDefined, Type::Unused,  Type::Byte};
  if (type < 1 || type > 6)
    throw file_error("tokenizer", path_, "the piece ", in_quotes(text), " has the type ", type, ", which is not known");
  budget_.take(piece_bytes(text.size()));
  v_.pieces.emplace_back(text), v_.scores.push_back(score), v_.types.push_back(kTypes[type - 1]);
}

// Reads the fields that determine encoding. The others describe the training.
void ModelReader::trainer(std::span<const std::byte> bytes) {
  static constexpr std::uint64_t kTraining[] = {1,  2,  4,  5,  6,  7,  10, 11, 12, 13, 14, 15, 16, 17,
                                                18, 19, 20, 21, 22, 23, 25, 26, 30, 31, 32, 33, 34, 36,
                                                40, 41, 42, 43, 45, 48, 49, 50, 51, 52, 53, 54, 55};
  for (ModelFields p(bytes, path_); p.next();) {
    if (p.field() == 3) {
      if (p.integer() < 1 || p.integer() > 4)
        throw file_error("tokenizer", path_, "a model of the type ", p.integer(), " is not known");
      m_.kind = static_cast<SentencePieceModel::Kind>(p.integer());
    } else if (p.field() == 24) {
      m_.whitespace_as_suffix = p.flag();
    } else if (p.field() == 35) {
      m_.byte_fallback = p.flag();
    } else if (p.field() == 44) {
      m_.unknown_surface = p.text("what an unknown token is decoded to");
      m_.unknown_surface.resize(std::min(m_.unknown_surface.size(), m_.unknown_surface.find('\0')));
    } else if (p.field() == 46) {
      bos_ = p.text("a piece");
    } else if (p.field() == 47) {
      eos_ = p.text("a piece");
    } else if (std::find(std::begin(kTraining), std::end(kTraining), p.field()) == std::end(kTraining)) {
      p.unknown("trainer_spec");
    }
  }
}

void ModelReader::rules(std::span<const std::byte> bytes, SentencePieceRules& r) {
  for (ModelFields p(bytes, path_); p.next();) {
    if (p.field() == 2 && !p.bytes().empty()) budget_.take(2 * p.bytes().size()), r.map = CharsMap(p.characters());
    else if (p.field() == 3) r.add_dummy_prefix = p.flag();
    else if (p.field() == 4) r.remove_extra_whitespaces = p.flag();
    else if (p.field() == 5) r.escape_whitespaces = p.flag();
    else if (p.field() != 1 && p.field() != 2 && p.field() != 6) p.unknown("normalizer_spec");  // name and source
  }
}

std::shared_ptr<const Tokenizer> ModelReader::tokenizer() {
  if (v_.pieces.size() >= static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw file_error("tokenizer", path_, "the vocabulary is too large");
  v_.add_bos = true;
  v_.bos = control(bos_), v_.eos = control(eos_);
  v_.space_prefix = m_.rules.add_dummy_prefix;
  v_.escape_spaces = m_.rules.escape_whitespaces;
  // True if the fields of a GGUF file could express the model.
  const bool plain = m_.kind == SentencePieceModel::Bpe && m_.rules.map.empty() && m_.back.map.empty() &&
                     !m_.rules.remove_extra_whitespaces && !m_.whitespace_as_suffix && v_.escape_spaces;
  if (!plain) v_.kind = Vocabulary::Kind::Pipeline;
  find_ends(v_);
  return make_sentencepiece_model(std::move(v_), std::move(m_), budget_);
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_sentencepiece(const MappedFile& file, Budget& budget) try {
  return ModelReader(file, budget).tokenizer();
} catch (const Error& e) {
  if (e.op() != "tokenizer" || std::string_view(e.what()).find(file.path()) != std::string_view::npos) throw;
  throw file_error("tokenizer", file.path(), e.problem());
}

}  // namespace lc
