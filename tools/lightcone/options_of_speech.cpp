// The command line of `lightcone transcribe`.
#include <memory>

#include "options.h"

namespace lc::tool {

void add_transcribe(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TranscribeCommand>();
  CLI::App* c = app.add_subcommand("transcribe", "What is said in a sound, as text or subtitles (Whisper)");
  c->footer(
      "  lightcone transcribe talk.wav --model whisper-tiny.en\n"
      "  lightcone transcribe film.flac --model whisper-small --srt > film.srt\n"
      "  lightcone transcribe rede.wav --model whisper-small --language de --translate\n"
      "  lightcone transcribe talk.wav --model whisper-base --json --words\n"
      "  lightcone transcribe talk.wav --model whisper-base --detect\n"
      "SOUND is WAV or FLAC of any rate, length and number of channels. The model is a folder of Hugging Face's, such "
      "as\n"
      "openai/whisper-tiny.en: config.json, weights, tokenizer.json, generation_config.json. Those whose names end in\n"
      ".en know English alone; others find the language in the first 30 s, unless --language names it.\n"
      "The sound is heard in windows of 30 s that end where a sentence does. A text that repeats itself or is "
      "unlikely\n"
      "is tried again with other choices (--seed), and unlikely texts of silence are left out. --prompt tells how "
      "names\n"
      "are spelled. --beam 1 is fastest. Segments are printed as they are found; Ctrl-C stops after the next.");
  c->add_option("SOUND", o->sound, "a WAV or FLAC file")->required()->type_name("");
  c->add_option("-m,--model", o->model, "folder of a Whisper")->required()->type_name("FOLDER");
  c->add_option("-l,--language", o->language, "the language that is spoken: en, de, ...; without: found out")
      ->type_name("CODE");
  c->add_flag("--translate", o->translate, "translate to English");
  one_of(c->add_option_function<std::string>(
             "--task", [o = o.get()](const std::string& task) { o->translate = task == "translate"; },
             "transcribe or translate: the same as --translate"),
         {"transcribe", "translate"})
      ->type_name("NAME");
  CLI::Option* srt = c->add_flag_callback(
      "--srt", [o = o.get()] { o->format = "srt"; }, "subtitles as SubRip has them");
  CLI::Option* vtt = c->add_flag_callback(
      "--vtt", [o = o.get()] { o->format = "vtt"; }, "subtitles as WebVTT has them");
  CLI::Option* json = c->add_flag_callback(
      "--json", [o = o.get()] { o->format = "json"; }, "segments with times, tokens and scores");
  srt->excludes(vtt)->excludes(json), vtt->excludes(json);
  c->add_flag("--words", o->words, "with --json: when each word is said")->needs(json);
  c->add_flag("--detect", o->detect, "print the likeliest languages of the first 30 s, and nothing else");
  c->add_option("--beam", o->beams, "texts that are followed at once; 1: greedy")
      ->capture_default_str()
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  c->add_option("--prompt", o->prompt, "a text that came before the sound, or has names and words of it")
      ->type_name("TEXT");
  c->add_flag_callback(
      "--no-context", [o = o.get()] { o->context = false; },
      "forget the text of a window in the next one: fewer endless repetitions");
  c->add_option("--seed", o->seed, "of the choices of a second try")->capture_default_str()->type_name("N");
  c->add_option("--ignore", o->ignore, "a key of config.json that changes nothing; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  c->add_option("--tokenizer", o->tokenizer, "when the model has none beside it")->type_name("FILE");
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  add_precision(*c, o->precision);
  c->callback([o, &exit_code] { exit_code = transcribe(*o); });
}

}  // namespace lc::tool
