// The command line of `lightcone embed`.
#include <memory>

#include "lightcone/models/sentence/sentence_config.h"
#include "options.h"

namespace lc::tool {

void add_embed(CLI::App& app) {
  auto o = std::make_shared<EmbedOptions>();
  CLI::App* c = app.add_subcommand("embed", "A vector for each line of text, near for lines of like meaning");
  c->footer(
      "  lightcone embed all-MiniLM-L6-v2 < questions.txt > vectors.jsonl\n"
      "  lightcone embed all-MiniLM-L6-v2 questions.txt -o vectors.npy\n"
      "  printf 'a cat sleeps\\na kitten is asleep\\nrates rose\\n' | lightcone embed all-MiniLM-L6-v2 --similarity\n"
      "  lightcone embed e5-small --prompt 'query: ' --normalize < questions.txt\n"
      "MODEL is a folder of sentence-transformers, or of any encoder of docs/models.md (BERT to ModernBERT):\n"
      "config.json, weights (safetensors or PyTorch's) and a tokenizer. modules.json and 1_Pooling/config.json say "
      "how\n"
      "the vectors of the tokens become one; without them it is their mean. A line gives a line of JSON, a list of\n"
      "numbers, in the order of the input; -o writes all of them as one array f32 [lines, width] instead, and\n"
      "--similarity a matrix of cosines, 1 for the same direction. A line that is longer than the model takes is cut\n"
      "off. Some models want a text before each line (their page says which): --prompt, or --prompt-name where the\n"
      "files have it. docs/models.md says more.");
  c->add_option("MODEL", o->model, "folder of the model")->required()->type_name("");
  c->add_option("FILE", o->input, "lines of text; without: the standard input")->type_name("");
  c->add_option("-o,--output", o->output, "write the vectors to this .npy file")->type_name("FILE");
  c->add_flag("--similarity", o->similarity, "print the cosines of all pairs of lines");
  c->add_option("--prompt", o->prompt, "a text before each line")->type_name("TEXT");
  c->add_option("--prompt-name", o->prompt_name, "the same, one that the model's files have")->type_name("NAME");
  std::vector<std::string> words;
  for (const std::string_view name : pooling_names()) words.emplace_back(name);
  one_of(c->add_option("--pooling", o->pooling, "in place of what the files say: " + joined(words, ", ")), words)
      ->type_name("HOW");
  c->add_flag("--normalize,!--no-normalize", o->normalize,
              "vectors of length 1, or as they are, whatever the files say");
  c->add_option("--max-length", o->length, "tokens of a line that count; 0: what the files say")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24))
      ->type_name("N");
  c->add_option("--batch", o->batch, "lines at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  c->add_option("--ignore", o->ignore, "a key of the model's JSON files that changes nothing; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  c->add_option("--tokenizer", o->tokenizer, "when the model has none beside it")->type_name("FILE");
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  add_precision(*c, o->precision);
  c->callback([o] { embed(*o); });
}

}  // namespace lc::tool
