// Attributes of sdy, as they stand in texts: kOpaque, so that one reader of them is enough.

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/mlir/bytecode_reader.h"

namespace gspmd::mlir {
namespace {

Attr opaque(std::string text) {
  Attr a;
  a.kind = Attr::Kind::kOpaque;
  a.text = std::move(text);
  return a;
}

std::string symbol(std::string_view name) {
  const auto of_word = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; };
  bool word = !name.empty() && std::all_of(name.begin(), name.end(), of_word);
  return word ? fmt::format("@{}", name) : fmt::format("@\"{}\"", name);
}

std::string numbers(Bytes* b) {
  std::string out;
  size_t n = b->count();
  for (size_t k = 0; k < n; ++k) out += fmt::format("{}{}", k == 0 ? "" : ", ", b->svarint());
  return out;
}

// The factor with this number: i, j, ... z, z_1, z_2, ...
std::string factor(const Bytes& b, int64_t number) {
  constexpr int64_t kLetters = 'z' - 'i' + 1;
  if (number < 0) b.fail("a factor with a negative number");
  if (number < kLetters) return std::string(1, static_cast<char>('i' + number));
  return fmt::format("z_{}", number - kLetters + 1);
}

std::string factors(Bytes* b, std::string_view separator) {
  std::string out;
  size_t n = b->count();
  for (size_t k = 0; k < n; ++k) {
    if (k > 0) out += separator;
    out += factor(*b, b->svarint());
  }
  return out;
}

constexpr OpForm kForms[] = {
    {"mesh", "mesh,sym_name"},
    {"sharding_constraint", "sharding"},
    {"reshard", "sharding"},
    {"manual_computation", "in_shardings,manual_axes,out_shardings"},
    {"named_computation", "?in_shardings,name,?out_shardings"},
    {"sharding_group", "group_id"},
    {"propagation_barrier", "allowed_direction"},
    {"data_flow_edge", "?sharding"},
    {"all_gather", "gathering_axes,out_sharding"},
    {"all_slice", "out_sharding,slicing_axes"},
    {"all_to_all", "out_sharding,params"},
    {"collective_permute", "out_sharding"},
    {"all_reduce", "out_sharding,reduction_axes"},
    {"reduce_scatter", "out_sharding,reduce_scatter_axes"},
    {"constant", "value"},
    {"return", ""},
};

}  // namespace

const OpForm* sdy_form(std::string_view name) {
  for (const OpForm& f : kForms) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

std::string BytecodeReader::joined(Bytes* b) {
  std::string out;
  size_t n = b->count();
  for (size_t k = 0; k < n; ++k) {
    if (k > 0) out += ", ";
    out += text_of(b);
    parts_ += out.size() / 64;  // lists of lists of lists ... grow
  }
  return out;
}

// [{"x", ?}p1, {}]
std::string BytecodeReader::sdy_dimension(Bytes* b) {
  std::string out = "{" + joined(b);
  if (b->byte() == 0) out += out.size() > 1 ? ", ?" : "?";
  out += "}";
  bool has_priority = false;
  uint64_t priority = b->varint_with_flag(&has_priority);
  if (has_priority) out += fmt::format("p{}", priority);
  return out;
}

std::string BytecodeReader::sdy_sharding(Bytes* b, bool unreduced) {
  const Attr& mesh = attr_ref(b);
  std::string out = "<";
  if (mesh.kind == Attr::Kind::kSymbol) {
    out += symbol(mesh.text);
  } else {
    out += mesh.text.starts_with("#sdy.") ? mesh.text.substr(5) : mesh.text;
  }
  out += ", [" + joined(b) + "]";
  std::string replicated = joined(b);
  if (!replicated.empty()) out += ", replicated={" + replicated + "}";
  std::string axes = unreduced ? joined(b) : "";
  if (!axes.empty()) out += ", unreduced={" + axes + "}";
  return out + ">";
}

// <([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>
std::string BytecodeReader::sdy_rule(Bytes* b) {
  std::string sizes;
  size_t n = b->count();
  for (size_t k = 0; k < n; ++k) {
    sizes += fmt::format("{}{}={}", k == 0 ? "" : ", ", factor(*b, static_cast<int64_t>(k)),
                         b->svarint());
  }
  std::string operands = joined(b), results = joined(b);
  std::string out = fmt::format("<({})->({}) {{{}}}", operands, results, sizes);
  for (std::string_view kind :
       {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
    std::string list = factors(b, ", ");
    if (!list.empty()) out += fmt::format(" {}={{{}}}", kind, list);
  }
  if (b->byte() != 0) out += ", custom";
  return "#sdy.op_sharding_rule" + out + ">";
}

Attr BytecodeReader::sdy_attr(Bytes* b) {
  uint64_t code = b->varint();
  switch (code) {
    case 0: {
      size_t n = b->count();
      std::string out;
      for (size_t k = 0; k < n; ++k) out += fmt::format("{}\"{}\"", k == 0 ? "" : ", ", text_of(b));
      return opaque("#sdy<manual_axes{" + out + "}>");
    }
    case 1: {
      std::string_view name = string(b);
      return opaque(fmt::format("\"{}\"={}", name, b->svarint()));
    }
    case 2: {
      std::string axes = joined(b), ids = numbers(b);
      if (!ids.empty()) ids = ", device_ids=[" + ids + "]";
      return opaque(fmt::format("#sdy.mesh<[{}]{}>", axes, ids));
    }
    case 3: {
      int64_t before = b->svarint();
      return opaque(fmt::format("({}){}", before, b->svarint()));
    }
    case 4: {
      std::string_view name = string(b);
      bool part = false;
      uint64_t sub_axis = b->varint_with_flag(&part);
      return opaque(fmt::format("\"{}\"{}", name, part ? ":" + attr(b, sub_axis).text : ""));
    }
    case 5:
      return opaque(sdy_dimension(b));
    case 6:
    case 15:
      return opaque(sdy_sharding(b, code == 15));
    case 7:
    case 16:
      return opaque("#sdy.sharding_per_value<[" + joined(b) + "]>");
    case 8:
      return opaque(factors(b, ""));
    case 9:
      return opaque("[" + joined(b) + "]");
    case 10:
      return opaque(sdy_rule(b));
    case 11:
      return opaque("{" + joined(b) + "}");
    case 12:
    case 14:
      return opaque("[" + joined(b) + "]");
    case 13: {
      std::string axes = joined(b);
      int64_t from = b->svarint();
      return opaque(fmt::format("{{{}}}: {}->{}", axes, from, b->svarint()));
    }
    case 17:
      b->fail("unreduced axes with another combiner than the sum are not supported");
    default:
      b->fail(fmt::format("the sdy attribute with the code {} is not known", code));
  }
}

}  // namespace gspmd::mlir
