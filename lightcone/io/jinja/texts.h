// Python's methods of texts, over UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/jinja/meter.h"

namespace lc::jinja {

// The characters (code points; of what is not UTF-8, bytes) as pieces of the text.
std::vector<std::string_view> characters(Meter& m, std::string_view s);
std::size_t length(Meter& m, std::string_view s);
bool is_space(std::uint32_t c);
// Without white space, or the given characters, at the ends.
std::string_view strip(Meter& m, std::string_view s, std::optional<std::string_view> of, bool left, bool right);
std::vector<std::string_view> split(Meter& m, std::string_view s, std::int64_t most,
                                    bool from_right);  // at white space
std::vector<std::string_view> split(Meter& m, std::string_view s, std::string_view by, std::int64_t most,
                                    bool from_right);
std::vector<std::string_view> lines(Meter& m, std::string_view s, bool keep_ends);
std::size_t find(Meter& m, std::string_view s, std::string_view what, std::size_t from = 0);  // npos: nowhere
std::size_t find_last(Meter& m, std::string_view s, std::string_view what);
std::string replace(Meter& m, std::string_view s, std::string_view from, std::string_view to, std::int64_t most);
enum class Case : std::uint8_t { Lower, Upper, Capitalize, Title, FilterTitle };
std::string in_case(Meter& m, std::string_view s, Case c);
// As Python writes a text within a list, and as JSON does.
void append_quoted(Meter& m, std::string& out, std::string_view s);
void append_json(Meter& m, std::string& out, std::string_view s, bool ascii);
std::string number(double x);  // as Python writes it

}  // namespace lc::jinja
