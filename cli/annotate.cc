#include "cli/annotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/custom_call.h"
#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling_reader.h"

namespace gspmd::cli {
namespace {

// A parameter's number ("0" or "%0"), or the name of any instruction of the entry computation.
Instr* find_instr(const Module& m, std::string_view name) {
  if (name.starts_with('%')) name.remove_prefix(1);
  const Computation& entry = *m.entry();
  for (Instr* i : entry.instrs()) {
    if (i->name == name) return i;
  }
  size_t number = 0;
  auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
  bool is_number = fault == std::errc() && end == name.data() + name.size();
  return is_number && number < entry.params().size() ? entry.params()[number] : nullptr;
}

// "x=2,y=4"
NamedMesh read_mesh(std::string_view text) {
  NamedMesh mesh;
  std::vector<int64_t> sizes;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    size_t equals = std::min(part.find('='), part.size());
    std::string name(part.substr(0, equals));
    std::string_view digits = part.substr(std::min(equals + 1, part.size()));
    int64_t size = 0;
    auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    bool good =
        !name.empty() && size >= 1 && fault == std::errc() && end == digits.data() + digits.size();
    bool repeated =
        std::any_of(mesh.axes.begin(), mesh.axes.end(), [&](auto& a) { return a.first == name; });
    if (!good || repeated) {
      throw UsageError(fmt::format("--mesh: '{}' {}", part,
                                   good ? "is a second axis of this name" : "is no axis"),
                       "write the axes with their sizes, as in x=2,y=4");
    }
    mesh.axes.emplace_back(std::move(name), size);
    sizes.push_back(size);
  }
  if (!checked_product(sizes)) throw UsageError("--mesh: more than 2^63 devices");
  return mesh;
}

// [{x}, {y, z}] -> [{"x"}, {"y", "z"}]; what is quoted stays, and so do priorities (p1) and
// sub-axes.
std::string with_quotes(std::string_view text) {
  std::string out;
  bool quoted = false, in_braces = false;
  for (size_t k = 0; k < text.size(); ++k) {
    char c = text[k];
    if (c == '"') quoted = !quoted;
    if (c == '{' || c == '}') in_braces = c == '{';
    bool starts_word =
        !quoted && in_braces && (std::isalpha(static_cast<unsigned char>(c)) || c == '_');
    if (!starts_word) {
      out.push_back(c);
      continue;
    }
    size_t end = k;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    out += fmt::format("\"{}\"", text.substr(k, end - k));
    k = end - 1;
  }
  return out;
}

// Over --mesh: [{x}, {}], or sdy's own <@mesh, [{"x"}, {}]>.
ShardingSpelling read_over_mesh(std::string text, const NamedMesh& mesh) {
  if (mesh.axes.empty()) {
    throw UsageError(fmt::format("--annotate: '{}' names axes, but there is no mesh", text),
                     "give its axes, as in --mesh x=2,y=4");
  }
  if (text.starts_with('[')) text = "<@mesh, " + with_quotes(text) + ">";
  size_t position = 0;
  ShardingSpelling s = parse_sdy_sharding(text, &position);
  s.mesh_name.clear();
  s.mesh = mesh;
  if (auto fault = find_axis_fault(s, &mesh)) throw SpellingError{0, fault->message, fault->hint};
  return s;
}

ShardingSpelling read_spelling(const std::string& text, const NamedMesh& mesh) {
  try {
    if (text.starts_with('[') || text.starts_with('<') || text.starts_with('#')) {
      return read_over_mesh(text, mesh);
    }
    size_t position = 0;
    ShardingSpelling s = parse_hlo_sharding(text, &position);
    if (position != text.size()) throw SpellingError{position, "more text behind the sharding", ""};
    return s;
  } catch (const SpellingError& e) {
    throw UsageError(fmt::format("--annotate: {} in '{}'", e.message, text), e.hint);
  }
}

void annotate(const std::string& text, const NamedMesh& mesh, Module* m) {
  size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  if (equals == std::string::npos) {
    throw UsageError(fmt::format("--annotate: '{}' has no '='", text),
                     "write NAME={devices=[2,4]<=[8]}, or over --mesh NAME=[{x},{}]");
  }
  Instr* i = find_instr(*m, name);
  if (i == nullptr) {
    throw UsageError(
        fmt::format("--annotate: the entry computation '{}' has no instruction '{}' and no "
                    "such parameter; it has {} parameters",
                    m->entry()->name(), name, m->entry()->params().size()),
        "use the name of an instruction of the entry computation, or a parameter's number");
  }
  i->annotation = m->context().spelling(read_spelling(text.substr(equals + 1), mesh));
  if (frontend_attribute(*i, "xla.sdy.sharding")) {  // it would win over the annotation
    set_frontend_attribute(i, "xla.sdy.sharding", std::nullopt);
  }
}

bool has_call(const Module& m, std::string_view target) {
  for (const auto& c : m.computations()) {
    for (const Instr* i : c->instrs()) {
      const auto* a = i->attributes.get_if<CustomCallAttrs>();
      if (a != nullptr && a->target == target) return true;
    }
  }
  return false;
}

void add_custom_rule(const std::string& text, Module* m) {
  size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw UsageError(fmt::format("--custom-rule: '{}' has no '='", text),
                     "write TARGET=a b, b c -> a c");
  }
  std::string target = text.substr(0, equals);
  if (!has_call(*m, target)) {
    throw UsageError(
        fmt::format("--custom-rule: the program has no custom-call of target '{}'", target),
        "use the text of custom_call_target");
  }
  set_custom_rule(m->context(), target, text.substr(equals + 1));
}

}  // namespace

void annotate(const Options& o, Module* m) {
  for (const std::string& text : o.custom_rules) add_custom_rule(text, m);
  NamedMesh mesh = read_mesh(o.mesh);
  for (const std::string& text : o.annotations) annotate(text, mesh, m);
  if (mesh.axes.empty() || o.num_partitions > 0 || m->attrs.num_partitions > 1) return;
  for (const auto& axis : mesh.axes) m->attrs.num_partitions *= axis.second;
}

}  // namespace gspmd::cli
