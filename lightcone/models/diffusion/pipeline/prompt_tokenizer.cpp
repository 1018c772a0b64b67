#include "lightcone/models/diffusion/pipeline/prompt_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/tokenizer_json.h"

namespace lc::diffusion {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kBegin = "<|startoftext|>", kEnd = "<|endoftext|>";

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    s += c;
  }
  return s + '"';
}

// The id that vocab.json has for a token.
std::int64_t id_of(const io::Json& vocab, std::string_view token, const std::string& path) {
  const auto id = vocab[token].integer();
  if (!id || *id < 0)
    throw file_error("tokenizer", path, "it has no ", in_quotes(token), ", which CLIP's tokenizer has");
  return *id;
}

// CLIP's tokenizer.json, from the two files that its authors' class reads: a pattern that splits texts, bytes as
// letters, and pairs of pieces in the order in which they merge.
std::string written_as_json(const std::string& folder, const io::Json& vocab, const std::string& vocab_text,
                            const std::string& padding) {
  const std::string merges = read_text_file((fs::path(folder) / "merges.txt").string());
  const std::string begin = std::to_string(id_of(vocab, kBegin, folder)),
                    end = std::to_string(id_of(vocab, kEnd, folder));
  const auto added = [](std::string_view token, const std::string& id, bool special) {
    return R"({"id":)" + id + R"(,"content":)" + quoted(token) +
           R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":)" +
           (special ? "true}" : "false}");
  };
  std::string s = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" + added(kBegin, begin, true) +
                  ',' + added(kEnd, end, true);
  // A padding token of its own, as "!" of SDXL's second tokenizer, is found in texts, too.
  if (!padding.empty() && padding != kEnd && padding != kBegin && vocab[padding].integer())
    s += ',' + added(padding, std::to_string(id_of(vocab, padding, folder)), false);
  s += "],";
  s += R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},)"
       R"({"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Lowercase"}]},)";
  s += R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
       R"("<\\|startoftext\\|>|<\\|endoftext\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"},)"
       R"("behavior":"Removed","invert":true},)"
       R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]},)";
  s += R"("post_processor":{"type":"RobertaProcessing","sep":["<|endoftext|>",)" + end +
       R"(],"cls":["<|startoftext|>",)" + begin + R"(],"trim_offsets":false,"add_prefix_space":false},)";
  s += R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)";
  s += R"("model":{"type":"BPE","dropout":null,"unk_token":"<|endoftext|>","continuing_subword_prefix":"",)"
       R"("end_of_word_suffix":"</w>","fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":)" +
       vocab_text + R"(,"merges":[)";
  bool first = true;
  for (std::size_t at = 0; at < merges.size();) {
    const std::size_t stop = std::min(merges.find('\n', at), merges.size());
    std::string_view line(merges.data() + at, stop - at);
    at = stop + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    if (std::ranges::count(line, ' ') != 1)
      throw file_error("tokenizer", folder, "merges.txt has the line ", in_quotes(line),
                       ", which is no pair of pieces");
    s += (first ? "" : ",") + quoted(line);
    first = false;
  }
  return s + "]}}";
}

// A token of a JSON file of settings, written as a text or as an object with its content; "": there is none.
std::string token_in(const io::Json& settings, std::string_view key) {
  const io::Json j = settings[key];
  return std::string(j.is(io::Json::Kind::String) ? j.text() : j["content"].text());
}

}  // namespace

PromptTokenizer PromptTokenizer::load(const std::string& folder, std::int64_t length, bool t5, const ReadOptions& o) {
  PromptTokenizer t;
  t.length_ = length;
  const auto path = [&](const char* name) { return (fs::path(folder) / name).string(); };
  Budget budget(o, folder);
  std::string padding;
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"})
    if (fs::exists(path(name))) {
      const io::JsonDocument settings(read_text_file(path(name)), path(name), budget);
      if (std::string token = token_in(settings.root(), "pad_token"); !token.empty()) padding = std::move(token);
    }
  if (!t5 && fs::exists(path("vocab.json"))) {
    const std::string vocab_text = read_text_file(path("vocab.json"));
    budget.parsed(vocab_text.size());
    const io::JsonDocument vocab(vocab_text, path("vocab.json"), budget);
    const std::string text = written_as_json(folder, vocab.root(), vocab_text, padding);
    const auto file = MappedFile::view(path("vocab.json"), std::as_bytes(std::span(text)));
    t.tokenizer_ = tokenizer_from_json(*file, budget);
  } else {
    t.tokenizer_ = load_tokenizer(folder, 0, o);
  }
  const std::vector<int> empty = t.tokenizer_->encode("");
  const std::size_t marks = t5 ? 1 : 2;
  if (empty.size() != marks || length < static_cast<std::int64_t>(marks))
    throw file_error("tokenizer", folder, "it is not ", t5 ? "T5's" : "CLIP's", ": an empty text has ", empty.size(),
                     " tokens, and not ", t5 ? "an end" : "a beginning and an end");
  if (t5 && padding.empty()) padding = "<pad>";
  const auto& pieces = t.tokenizer_->vocabulary().pieces;
  const auto at = std::ranges::find(pieces, padding);
  t.padding_ = at == pieces.end() ? empty.back() : at - pieces.begin();
  return t;
}

bool PromptTokenizer::too_long(const std::string& prompt) const {
  return std::ssize(tokenizer_->encode(prompt)) > length_;
}
std::vector<std::int64_t> PromptTokenizer::ids(const std::string& prompt) const {
  const std::vector<std::string_view> one{prompt};
  const Encoding e = tokenizer_->encode_within(one, static_cast<std::size_t>(length_));
  std::vector<std::int64_t> ids(e.ids.begin(), e.ids.end());
  ids.resize(static_cast<std::size_t>(length_), padding_);
  return ids;
}

}  // namespace lc::diffusion
