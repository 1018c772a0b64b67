// A template's syntax tree. Nodes lie in one list, so that taking a tree down never recurses.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/jinja/lexer.h"
#include "lightcone/io/jinja/value.h"

namespace lc::jinja {

struct Node {
  enum class Kind : std::uint8_t {
    // expressions
    Literal,    // value
    Name,       // text
    ListOf,     // parts
    TupleOf,    // parts
    DictOf,     // parts: key, value, key, ...
    Member,     // parts[0] . text
    Item,       // parts[0] [ parts[1] ]
    Slice,      // parts[0] [ parts[1] : parts[2] : parts[3] ], each may be null
    Call,       // parts[0] ( parts[1...], named )
    Filter,     // parts[0] | text ( parts[1...], named ); parts[0] is null for a block's text
    Test,       // parts[0] is text ( parts[1...] )
    Unary,      // text parts[0]: "-", "+", "not"
    Binary,     // parts[0] text parts[1]
    Join,       // parts[0] ~ parts[1] ~ ...
    Compare,    // parts[0] words[0] parts[1] words[1] parts[2] ...
    And,        // parts[0] and parts[1]
    Or,         // parts[0] or parts[1]
    Condition,  // parts[1] if parts[0] else parts[2], which may be null
    // statements
    Data,      // value
    Print,     // parts[0]
    Block,     // parts, in order
    If,        // parts: condition, block, condition, block, ..., perhaps a block
    For,       // parts: target, members, condition or null, block, block or null for none
    Set,       // parts: target, value
    SetBlock,  // parts: target, filter or null, block
    Macro,     // text ( words ): parts[0] block, then each parameter's default, or null; rest, named_rest
    FilterOf,  // parts: filter, block
    With,      // parts: block, target, value, target, value, ...
    Scope,     // parts[0], with variables of its own
    Break,
    Continue
  };
  Kind kind;
  std::uint32_t line = 0;
  int depth = 1;
  std::string text;
  Value value = {};
  std::vector<const Node*> parts = {};
  std::vector<std::string> words = {};
  std::vector<std::pair<std::string, const Node*>> named = {};
  bool rest = false, named_rest = false;  // whether a macro's block speaks of varargs and of kwargs
};

struct Tree {
  std::deque<Node> nodes;
  const Node* root = nullptr;
};

Tree parse(std::string_view source);  // SyntaxFault

}  // namespace lc::jinja
