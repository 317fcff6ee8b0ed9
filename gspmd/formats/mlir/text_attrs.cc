#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "gspmd/formats/mlir/text_reader.h"

namespace gspmd::mlir {
namespace {

Attr of_kind(Attr::Kind kind, std::string text = {}) {
  Attr a;
  a.kind = kind;
  a.text = std::move(text);
  return a;
}

}  // namespace

Attr TextReader::integers() {
  Attr a = of_kind(Attr::Kind::kArray);
  cursor_.list("[", "]", [&] {
    Attr i = of_kind(Attr::Kind::kInt);
    i.integer = cursor_.integer();
    a.elements.push_back(std::move(i));
  });
  return a;
}

void TextReader::attribute_dict(Attrs* into) {
  cursor_.list("{", "}", [&] {
    cursor_.next_char();
    std::string key = cursor_.name_or_string();
    Attr value = cursor_.try_take("=") ? attribute() : Attr();
    into->emplace_back(std::move(key), std::move(value));
  });
}

Attr TextReader::number_attribute(bool may_have_type) {
  size_t at = cursor_.position();
  std::string_view n = cursor_.number();
  bool real = n.find('.') != std::string_view::npos;
  Attr a = of_kind(real ? Attr::Kind::kFloat : Attr::Kind::kInt);
  if (real) {
    a.real = std::strtod(std::string(n).c_str(), nullptr);
  } else {
    cursor_.seek(at);
    a.integer = cursor_.integer();
    a.real = static_cast<double>(a.integer);
  }
  if (may_have_type && cursor_.try_take(":")) a.type = type();
  return a;
}

// After `array`: <i64: 1, 2>, <i1: true>, <i64>.
Attr TextReader::typed_array() {
  Attr a = of_kind(Attr::Kind::kArray);
  cursor_.take("<");
  type();
  if (!cursor_.try_take(">")) {
    cursor_.take(":");
    do {
      a.elements.push_back(attribute());
    } while (cursor_.try_take(","));
    cursor_.take(">");
  }
  return a;
}

Attr TextReader::attribute() {
  DepthGuard guard(this);
  char c = cursor_.next_char();
  if (c == '"') {
    Attr a = of_kind(Attr::Kind::kString, cursor_.string());
    if (cursor_.try_take(":")) a.type = type();
    return a;
  }
  if (cursor_.peek_number()) return number_attribute();
  if (c == '@') {
    cursor_.take("@");
    Attr a = of_kind(Attr::Kind::kSymbol, cursor_.name_or_string());
    while (cursor_.try_take("::@")) a.text = cursor_.name_or_string();
    return a;
  }
  if (c == '[') {
    Attr a = of_kind(Attr::Kind::kArray);
    cursor_.list("[", "]", [&] { a.elements.push_back(attribute()); });
    return a;
  }
  if (c == '{') {
    Attr a = of_kind(Attr::Kind::kDict);
    attribute_dict(&a.entries);
    return a;
  }
  if (c == '#') return hash_attribute();
  for (bool value : {false, true}) {
    if (!cursor_.try_word(value ? "true" : "false")) continue;
    Attr a = of_kind(Attr::Kind::kBool);
    a.integer = value;
    return a;
  }
  if (cursor_.try_word("array")) return typed_array();
  if (cursor_.try_word("dense")) return dense();
  if (cursor_.try_word("dense_resource")) return dense_resource();
  if (cursor_.try_word("unit")) return Attr();
  if (cursor_.peek_word() == "loc") {
    location();
    return Attr();
  }
  if (cursor_.peek_word() == "affine_map" || cursor_.peek_word() == "sparse") {
    Attr a = of_kind(Attr::Kind::kOpaque, std::string(cursor_.word()));
    a.text += cursor_.balanced();
    return a;
  }
  Attr a = of_kind(Attr::Kind::kType);
  a.type = type();
  return a;
}

// #alias, #sdy.sharding<...>, #stablehlo.gather<offset_dims = [1]>, #stablehlo<transpose ADJOINT>.
Attr TextReader::hash_attribute() {
  size_t at = cursor_.position();
  cursor_.take("#");
  std::string name = cursor_.name_or_string();
  if (!cursor_.peek("<")) return alias_attribute(at, name);
  if (name.starts_with("sdy"))
    return of_kind(Attr::Kind::kOpaque, "#" + name + std::string(cursor_.balanced()));
  if (name.find('.') != std::string::npos) return struct_attribute(std::move(name));
  // The short form of an enumeration or a struct: the word says which.
  cursor_.take("<");
  std::string kind(cursor_.word());
  if (cursor_.peek("<")) {
    Attr a = struct_attribute(name + "." + kind);
    cursor_.take(">");
    return a;
  }
  Attr a = of_kind(Attr::Kind::kSymbol, std::string(cursor_.word()));
  cursor_.take(">");
  return a;
}

Attr TextReader::alias_attribute(size_t at, const std::string& name) {
  auto alias = aliases_.find("#" + name);
  if (alias == aliases_.end()) cursor_.fail(at, fmt::format("#{} is not defined", name));
  size_t after = cursor_.end();
  cursor_.seek(alias->second);
  Attr a = attribute();
  cursor_.seek(after);
  return a;
}

// <name = value, ...> or <WORD>, or else kept as text.
Attr TextReader::struct_attribute(std::string name) {
  size_t begin = cursor_.position();
  std::string_view text = cursor_.balanced();
  size_t after = cursor_.end();
  cursor_.seek(begin + 1);
  Attr a = of_kind(Attr::Kind::kDict, name);
  if (name == "stablehlo.conv" || name == "mhlo.conv") {
    a = read_conv_labels(*this);
  } else if (!cursor_.try_take(">")) {
    std::string_view first = cursor_.word();
    if (!first.empty() && cursor_.peek(">")) {
      a = of_kind(Attr::Kind::kSymbol, std::string(first));
    } else if (first.empty() || !cursor_.peek("=")) {
      a = of_kind(Attr::Kind::kOpaque, "#" + name + std::string(text));
    } else {
      cursor_.seek(begin + 1);
      do {
        std::string key(cursor_.word());
        cursor_.take("=");
        a.entries.emplace_back(std::move(key), struct_field());
      } while (cursor_.try_take(","));
    }
  }
  cursor_.seek(after);
  return a;
}

// A value, an enumeration's word, or a sub-axis: (1)2.
Attr TextReader::struct_field() {
  if (cursor_.try_take("(")) {
    Attr a = of_kind(Attr::Kind::kArray);
    a.elements.push_back(number_attribute());
    cursor_.take(")");
    a.elements.push_back(number_attribute());
    return a;
  }
  std::string_view word = cursor_.peek_word();
  bool enumerator = !word.empty() && absl::ascii_isupper(word[0]);
  return enumerator ? of_kind(Attr::Kind::kSymbol, std::string(cursor_.word())) : attribute();
}

void TextReader::maybe_location(Op* op) {
  if (cursor_.peek_word() != "loc") return;
  Location l = location();
  if (op == nullptr || (l.name.empty() && l.file.empty())) return;
  op->location = static_cast<int32_t>(program_.locations.size());
  program_.locations.push_back(std::move(l));
}

// loc(...)
Location TextReader::location() {
  cursor_.take_word("loc");
  cursor_.take("(");
  Location l = location_body();
  cursor_.take(")");
  return l;
}

Location TextReader::location_body() {
  DepthGuard guard(this);
  Location l;
  size_t at = cursor_.position();
  if (cursor_.try_take("#")) return alias_location(at, cursor_.name_or_string());
  if (cursor_.peek("\"")) {
    std::string text = cursor_.string();
    if (cursor_.try_take(":")) {  // a file
      l.file = std::move(text);
      l.line = cursor_.integer();
      cursor_.take(":");
      cursor_.integer();
      if (!cursor_.try_word("to")) return l;
      if (cursor_.peek_number()) cursor_.integer();
      cursor_.take(":");
      cursor_.integer();
      return l;
    }
    if (cursor_.try_take("(")) {
      l = location_body();
      cursor_.take(")");
    }
    l.name = std::move(text);
    return l;
  }
  if (cursor_.try_word("loc")) {
    cursor_.take("(");
    l = location_body();
    cursor_.take(")");
    return l;
  }
  std::string_view word = cursor_.word();
  if (word == "unknown") return l;
  if (word == "callsite") {
    cursor_.take("(");
    l = location_body();
    cursor_.take_word("at");
    location_body();
    cursor_.take(")");
    return l;
  }
  if (word != "fused") cursor_.fail(at, "expected a location");
  if (cursor_.peek("<")) cursor_.balanced();
  bool first = true;
  cursor_.list("[", "]", [&] {
    Location part = location_body();
    if (first) l = std::move(part);
    first = false;
  });
  return l;
}

Location TextReader::alias_location(size_t at, const std::string& name) {
  if (auto known = locations_.find(name); known != locations_.end()) return known->second;
  auto alias = aliases_.find("#" + name);
  if (alias == aliases_.end()) cursor_.fail(at, fmt::format("#{} is not defined", name));
  size_t after = cursor_.end();
  cursor_.seek(alias->second);
  Location l = cursor_.peek_word() == "loc" ? location() : Location();
  cursor_.seek(after);
  locations_[name] = l;
  return l;
}

}  // namespace gspmd::mlir
