#include "options.h"

#include <algorithm>
#include <cctype>

#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/io/printable.h"
#include "spelling.h"

namespace lc::tool {

// Adds --threads. More threads than cores only wait for each other, and each needs memory of its own.
void add_threads(CLI::App& command, int& threads) {
  const int cores = backends::cpu::available_cores(), most = 4 * cores;
  command.add_option("--threads", threads, str_cat("0: all cores (", cores, " here); at most 4 for each, ", most))
      ->capture_default_str()
      ->check([cores, most](const std::string& given) -> std::string {
        const CLI::Range whole(0, most);
        if (whole(given).empty()) return "";
        return str_cat(given, " is not between 0 (all ", cores, " cores) and ", most, " (4 for each core)");
      })
      ->type_name("N");
}

void add_device(CLI::App& command, DeviceChoice& device) {
  command
      .add_option_function<std::string>(
          "--device", [&device](const std::string& given) { read_device(given, device); },
          "what runs the model: cpu (default), cuda, opencl or metal; cuda:1 is the second of its\n"
          "kind. 'lightcone devices' lists them")
      ->check([](const std::string& given) {
        DeviceChoice ignored;
        return read_device(given, ignored);
      })
      ->type_name("NAME");
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& w : words) all += (all.empty() ? "" : between) + w;
  return all;
}

CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  return option->transform(CLI::Validator(
      [words](std::string& given) -> std::string {
        std::string small = given;
        std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
        if (std::find(words.begin(), words.end(), small) != words.end()) return given = small, "";
        return str_cat(in_quotes(given), " is none of ", joined(words, ", "), did_you_mean(small, words));
      },
      ""));
}
void add_precision(CLI::App& command, Precision& precision) {
  add_choice<Precision>(command, "--precision", precision,
                        {{"highest", Precision::Highest}, {"high", Precision::High}, {"medium", Precision::Medium}},
                        "of matrix products: highest (f32, default), high, or medium (prompts and their\n"
                        "attention in bf16; for quantised weights 8-bit activations: prompts several times as\n"
                        "fast, tokens somewhat faster)")
      ->type_name("NAME");
}

void add_kv_cache(CLI::App& command, DType& type) {
  add_choice<DType>(command, "--kv-cache", type,
                    {{"f32", DType::F32}, {"f16", DType::F16}, {"bf16", DType::BF16}, {"i8", DType::I8}},
                    "how keys and values are kept: f32 (exact, default); f16 or bf16 (half the bytes; logits move by\n"
                    "less than 0.1 or 0.5 %); i8 (a quarter, and 4 bytes for each head of a position; about 1 %)")
      ->type_name("TYPE");
}

}  // namespace lc::tool
