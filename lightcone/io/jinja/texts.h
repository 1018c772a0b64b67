// Python's methods of texts, on UTF-8. Invalid bytes count as characters of one byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/jinja/meter.h"

namespace lc::jinja {

// Returns the characters (code points) as pieces of the text.
std::vector<std::string_view> characters(Meter& m, std::string_view s);
// Returns the number of characters.
std::size_t length(Meter& m, std::string_view s);
// True for white space as Python's str.isspace().
bool is_space(std::uint32_t c);
// Removes white space, or the given characters, from the ends.
std::string_view strip(Meter& m, std::string_view s, std::optional<std::string_view> of, bool left, bool right);
// Splits at white space, at most `most` times if it is not negative.
std::vector<std::string_view> split(Meter& m, std::string_view s, std::int64_t most, bool from_right);
// Splits at `by`, at most `most` times if it is not negative. Throws Fault if `by` is empty.
std::vector<std::string_view> split(Meter& m, std::string_view s, std::string_view by, std::int64_t most,
                                    bool from_right);
// Splits into lines, as str.splitlines().
std::vector<std::string_view> lines(Meter& m, std::string_view s, bool keep_ends);
// Returns the byte offset of the first occurrence from `from` on; npos if there is none.
std::size_t find(Meter& m, std::string_view s, std::string_view what, std::size_t from = 0);
// Returns the byte offset of the last occurrence; npos if there is none.
std::size_t find_last(Meter& m, std::string_view s, std::string_view what);
// Replaces the first `most` occurrences; all if `most` is negative.
std::string replace(Meter& m, std::string_view s, std::string_view from, std::string_view to, std::int64_t most);
// The case of letters after in_case(). Title is str.title(), FilterTitle is Jinja's filter.
enum class Case : std::uint8_t { Lower, Upper, Capitalize, Title, FilterTitle };
// Converts a text to a case.
std::string in_case(Meter& m, std::string_view s, Case c);
// Appends a text as Python's repr() writes it.
void append_quoted(Meter& m, std::string& out, std::string_view s);
// Appends a text as a JSON string.
void append_json(Meter& m, std::string& out, std::string_view s, bool ascii);
// Formats a number as Python's repr().
std::string number(double x);

}  // namespace lc::jinja
