// The command line's pieces that several subcommands have. Only main.cpp and the files named options*.cpp include the
// parser, which takes long to compile.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"

namespace lc::tool {

std::string joined(const std::vector<std::string>& words, const char* between);
void add_threads(CLI::App& command, int& threads);
void add_device(CLI::App& command, DeviceChoice& device);
void add_precision(CLI::App& command, Precision& precision);
void add_kv_cache(CLI::App& command, DType& type);

// Makes an option take one of a few words, in any case.
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words);
template <class T>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, T& value,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& help) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  const auto set = [&value, choices](const std::string& given) {
    for (const auto& [word, meaning] : choices)
      if (word == given) value = meaning;
  };
  return one_of(command.add_option_function<std::string>(flag, set, help), words);
}

// Adds an option that is a real number. The parser itself would use the C locale.
template <class T>
CLI::Option* add_real(CLI::App& c, const char* flag, T& value, const std::string& help) {
  const auto set = [&value](const CLI::results_t& given) {
    const std::optional<T> v = real_of<T>(given.at(0));
    if (v) value = *v;
    return v.has_value();
  };
  return c.add_option(flag, set, help, true, [&value] { return str_cat(value); })->expected(1)->type_size(1);
}

// The subcommands of files of models.
void add_inspect(CLI::App& app);
void add_convert(CLI::App& app);
void add_embed(CLI::App& app);
void add_imagine(CLI::App& app);
void add_detect(CLI::App& app);
void add_plan(CLI::App& app);
void add_transcribe(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);

}  // namespace lc::tool
