#include "tests/equivalence/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace gspmd::equivalence {
namespace {

// + - * / and brackets over whole numbers and sizes.
class Expression {
 public:
  Expression(std::string text, const std::map<char, int64_t>& sizes)
      : text_(std::move(text)), sizes_(sizes) {}
  int64_t value() {
    int64_t v = sum();
    if (at_ != text_.size()) throw std::runtime_error("bad expression " + text_);
    return v;
  }

 private:
  int64_t sum() {
    int64_t v = product();
    while (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
      char op = text_[at_++];
      int64_t w = product();
      v = op == '+' ? v + w : v - w;
    }
    return v;
  }
  int64_t product() {
    int64_t v = factor();
    while (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '/')) {
      char op = text_[at_++];
      int64_t w = factor();
      v = op == '*' ? v * w : v / w;
    }
    return v;
  }
  int64_t factor() {
    char c = text_.at(at_);
    if (c == '(') {
      ++at_;
      int64_t v = sum();
      ++at_;
      return v;
    }
    if (std::isupper(static_cast<unsigned char>(c))) {
      ++at_;
      return sizes_.at(c);
    }
    int64_t v = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
      v = v * 10 + (text_[at_++] - '0');
    return v;
  }
  std::string text_;
  const std::map<char, int64_t>& sizes_;
  size_t at_ = 0;
};

bool is_expression(const std::string& s) {
  bool letter = false;
  for (char c : s) {
    letter = letter || std::isupper(static_cast<unsigned char>(c));
    if (!std::isupper(static_cast<unsigned char>(c)) &&
        !std::isdigit(static_cast<unsigned char>(c)) &&
        std::string("+-*/()").find(c) == std::string::npos)
      return false;
  }
  return letter;
}

std::string with_sizes(const std::string& text, const std::map<char, int64_t>& sizes) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    char open = text[at], close = open == '{' ? '}' : '>';
    size_t end = open == '{' || open == '<' ? text.find(close, at) : std::string::npos;
    std::string inside = end == std::string::npos ? "" : text.substr(at + 1, end - at - 1);
    if (!is_expression(inside)) {
      out += text[at];
      continue;
    }
    out += std::to_string(Expression(inside, sizes).value());
    at = end;
  }
  return out;
}

}  // namespace

std::vector<Program> read_programs(const std::string& path) {
  std::ifstream file(path);
  std::vector<Program> out;
  std::vector<std::pair<std::string, std::string>> blocks;  // heading, text
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("== ")) {
      blocks.emplace_back(line.substr(3), "");
    } else if (!blocks.empty()) {
      blocks.back().second += line + "\n";
    }
  }
  for (const auto& [heading, text] : blocks) {
    std::istringstream words(heading);
    std::string opcode, word;
    words >> opcode;
    std::vector<std::map<char, int64_t>> alternatives(1);
    while (words >> word) {
      if (word == "|") {
        alternatives.emplace_back();
      } else {
        alternatives.back()[word[0]] = std::stoll(word.substr(2));
      }
    }
    for (const auto& sizes : alternatives) {
      Program p{opcode, "", "HloModule m\n" + with_sizes(text, sizes)};
      for (const auto& [name, size] : sizes) p.sizes += fmt::format(" {}={}", name, size);
      out.push_back(std::move(p));
    }
  }
  return out;
}

namespace {

struct Place {
  size_t tensor;
  int dim;
};

// The axes on each dimension of a tensor, as HLO spells it.
std::string sharding(const std::vector<std::vector<int>>& dims, const std::vector<int64_t>& mesh) {
  std::vector<int> order;
  std::string tiles;
  for (const auto& axes : dims) {
    int64_t n = 1;
    for (int a : axes) {
      n *= mesh[static_cast<size_t>(a)];
      order.push_back(a);
    }
    tiles += fmt::format("{}{}", tiles.empty() ? "" : ",", n);
  }
  if (order.empty()) return "";
  int64_t copies = 1;
  for (int a = 0; a < static_cast<int>(mesh.size()); ++a) {
    if (std::find(order.begin(), order.end(), a) != order.end()) continue;
    copies *= mesh[static_cast<size_t>(a)];
    order.push_back(a);
  }
  std::string sizes, permutation;
  for (int64_t m : mesh) sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", m);
  for (int a : order) permutation += fmt::format("{}{}", permutation.empty() ? "" : ",", a);
  if (copies > 1) tiles += fmt::format(",{}", copies);
  return fmt::format("{{devices=[{}]<=[{}]T({}){}}}", tiles, sizes, permutation,
                     copies > 1 ? " last_tile_dim_replicate" : "");
}

// Axis a at places[a]: one case, with and without handlers.
void add(const std::vector<int>& ranks, const std::vector<int64_t>& mesh,
         const std::vector<std::vector<Place>>& places, std::vector<Case>* out) {
  std::vector<std::vector<std::vector<int>>> dims(ranks.size());
  for (size_t t = 0; t < ranks.size(); ++t)
    dims[t].resize(static_cast<size_t>(std::max(0, ranks[t])));
  for (size_t a = 0; a < places.size(); ++a) {
    for (const Place& p : places[a])
      dims[p.tensor][static_cast<size_t>(p.dim)].push_back(static_cast<int>(a));
  }
  Case c;
  c.mesh = mesh;
  for (size_t t = 0; t + 1 < ranks.size(); ++t) c.parameters.push_back(sharding(dims[t], mesh));
  c.result = sharding(dims.back(), mesh);
  for (bool handlers : {true, false}) {
    c.handlers = handlers;
    out->push_back(c);
  }
}

}  // namespace

std::vector<Case> enumerate_cases(const std::vector<int>& ranks) {
  std::vector<Place> all;
  for (size_t t = 0; t < ranks.size(); ++t) {
    for (int d = 0; d < ranks[t]; ++d) all.push_back({t, d});
  }
  std::vector<Case> out;
  for (int64_t n : {2, 3, 4, 6, 8}) {
    for (size_t i = 0; i < all.size(); ++i) {
      add(ranks, {n}, {{all[i]}}, &out);
      if (n > 4) continue;
      for (size_t j = i + 1; j < all.size(); ++j) {
        if (all[i].tensor != all[j].tensor) add(ranks, {n}, {{all[i], all[j]}}, &out);
      }
    }
  }
  for (const std::vector<int64_t>& mesh : {std::vector<int64_t>{2, 2}, {3, 2}}) {
    for (const Place& x : all) {
      for (const Place& y : all) {
        add(ranks, mesh, {{x}, {y}}, &out);
        // The result takes the first axis as well, on one of its dimensions.
        size_t result = ranks.size() - 1;
        if (x.tensor == result || ranks.back() < 1) continue;
        int d = static_cast<int>((x.tensor + static_cast<size_t>(x.dim + y.dim)) %
                                 static_cast<size_t>(ranks.back()));
        add(ranks, mesh, {{x, {result, d}}, {y}}, &out);
      }
    }
  }
  // Three axes: all on one tensor, or each on another.
  for (size_t i = 0; i < all.size(); ++i) {
    const Place &x = all[i], &y = all[(i * 5 + 1) % all.size()], &z = all[(i * 7 + 3) % all.size()];
    add(ranks, {2, 2, 2}, {{x}, {y}, {z}}, &out);
    add(ranks, {2, 3, 2}, {{y}, {x}, {x}}, &out);
  }
  return out;
}

std::string describe(const Case& c) {
  std::string out = c.handlers ? "" : "without handlers,";
  for (size_t k = 0; k < c.parameters.size(); ++k) {
    if (!c.parameters[k].empty()) out += fmt::format(" --annotate '{}={}'", k, c.parameters[k]);
  }
  return out + (c.result.empty() ? "" : fmt::format(" result {}", c.result));
}

}  // namespace gspmd::equivalence
