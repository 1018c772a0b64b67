// lightcone generate with an encoder-decoder: the prompt is the source, and the text is what the model makes of it.
#include <filesystem>

#include "command.h"
#include "commands.h"
#include "lightcone/models/files/config_file.h"
#include "lightcone/models/seq2seq/seq2seq.h"
#include "speak.h"

namespace lc::tool {

bool is_seq2seq(const std::string& model) {
  std::error_code wrong;
  const std::filesystem::path file = std::filesystem::path(model) / "config.json";
  if (!std::filesystem::is_regular_file(file, wrong)) return false;
  const std::string type = ConfigFile(file.string(), {}).text("model_type");
  return Seq2SeqConfig::knows(type) && type != "whisper";
}

int answer(const GenerateOptions& o, const std::string& prompt) {
  const Seq2Seq model = Seq2Seq::load(
      o.model, {.context = o.context,
                .compiler = compiler_for(open_device(o.device), {.threads = o.threads, .precision = o.precision}),
                .tokenizer = o.tokenizer});
  print_notes(model.programs().decoder());
  catch_signals();
  const std::vector<int> text = model.generate(
      model.source(prompt), {.max_tokens = o.max_tokens, .on_token = [](int) { return caught_signal() == 0; }});
  Stream out;
  out.add(model.tokenizer().decode(text));
  out.finish();
  const int signal = caught_signal();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace lc::tool
