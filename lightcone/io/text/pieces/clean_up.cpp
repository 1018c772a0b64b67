#include "lightcone/io/text/pieces/clean_up.h"

#include "lightcone/io/text/pieces/characters.h"

namespace lc {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  if (from.empty()) {
    each_character(text, [&](std::uint32_t, std::size_t begin, std::size_t end) {
      out += to, out += text.substr(begin, end - begin);
    });
    return out += to;
  }
  std::size_t done = 0;
  for (std::size_t at; (at = text.find(from, done)) != text.npos; done = at + from.size())
    out += text.substr(done, at - done), out += to;
  return out += text.substr(done);
}

std::string cleaned_up(std::string text, CleanUp rules) {
  struct Rule {
    std::string_view from, to;
    CleanUp last;  // the last one in CleanUp who has the rule
  };
  static constexpr Rule kRules[] = {{" .", ".", CleanUp::Llama},    {" ?", "?", CleanUp::Llama},
                                    {" !", "!", CleanUp::Llama},    {" ,", ",", CleanUp::Llama},
                                    {" ' ", "'", CleanUp::Llama},   {" n't", "n't", CleanUp::Transformers},
                                    {" 'm", "'m", CleanUp::Llama},  {" do not", " don't", CleanUp::Tokenizers},
                                    {" 's", "'s", CleanUp::Llama},  {" 've", "'ve", CleanUp::Llama},
                                    {" 're", "'re", CleanUp::Llama}};
  for (const Rule& r : kRules)
    if (rules <= r.last && text.find(r.from) != text.npos) text = replaced(text, r.from, r.to);
  return text;
}

}  // namespace lc
