#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gspmd/base/check.h"
#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;
using Group = ShardingSpelling::Group;

template <typename... T>
void append(std::string* out, fmt::format_string<T...> form, T&&... values) {
  fmt::format_to(std::back_inserter(*out), form, std::forward<T>(values)...);
}

std::string_view to_string(SubgroupType type) {
  switch (type) {
    case SubgroupType::kReplicated:
      return "replicated";
    case SubgroupType::kManual:
      return "manual";
    case SubgroupType::kUnreduced:
      return "unreduced";
    case SubgroupType::kMaximal:
      return "maximal";
  }
  return "";
}

// The two ways to write names: 'x' in HLO, "x" in sdy.
enum class Quote : char { kHlo = '\'', kSdy = '"' };

void append_quoted(std::string* out, std::string_view name, Quote quote) {
  const char q = static_cast<char>(quote);
  out->push_back(q);
  for (char c : name) {
    if (c == q || c == '\\') out->push_back('\\');
    out->push_back(c);
  }
  out->push_back(q);
}

void append_axis(std::string* out, const NamedAxis& axis, Quote quote) {
  append_quoted(out, axis.name, quote);
  if (axis.size != 0) append(out, ":({}){}", axis.pre, axis.size);
}

std::string print_axes(const std::vector<NamedAxis>& axes, Quote quote, bool open = false) {
  std::string out = "{";
  std::string_view separator = "";
  for (const NamedAxis& axis : axes) {
    out += separator;
    append_axis(&out, axis, quote);
    separator = ", ";
  }
  if (open) append(&out, "{}?", separator);
  return out + "}";
}

std::string print_dims(const std::vector<NamedDim>& dims, Quote quote) {
  std::string out = "[";
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d > 0) out += ", ";
    out += print_axes(dims[d].axes, quote, dims[d].open);
    if (dims[d].priority) append(&out, "p{}", *dims[d].priority);
  }
  return out + "]";
}

void append_axis_sets(std::string* out, const ShardingSpelling& s, Quote quote) {
  if (!s.replicated_axes.empty()) {
    append(out, ", replicated={}", print_axes(s.replicated_axes, quote));
  }
  if (!s.unreduced_axes.empty()) {
    *out += ", unreduced=";
    if (s.unreduced_combiner != Combiner::kSum) {
      *out += gspmd::to_string(s.unreduced_combiner);
    }
    *out += print_axes(s.unreduced_axes, quote);
  }
}

std::string print_mesh_axes(const NamedMesh& mesh, Quote quote) {
  std::string out = "[";
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    if (a > 0) out += quote == Quote::kSdy ? ", " : ",";
    append_quoted(&out, mesh.axes[a].first, quote);
    append(&out, "={}", mesh.axes[a].second);
  }
  return out + "]";
}

std::string print_sdy_mesh_body(const NamedMesh& mesh) {
  std::string out = fmt::format("<{}", print_mesh_axes(mesh, Quote::kSdy));
  if (mesh.maximal_device) {
    append(&out, ", device_ids=[{}]", *mesh.maximal_device);
  } else if (mesh.device_ids.size() > 0 && !is_plain(mesh.device_ids)) {
    append(&out, ", device_ids=[{}]", fmt::join(expand_ids(mesh.device_ids), ", "));
  }
  return out + ">";
}

void append_hlo_mesh(std::string* out, const NamedMesh& mesh) {
  if (mesh.maximal_device) {
    append(out, "maximal_mesh[device_id={}]", *mesh.maximal_device);
    return;
  }
  append(out, "mesh{}", print_mesh_axes(mesh, Quote::kHlo));
  if (mesh.device_ids.size() == 0 || is_plain(mesh.device_ids)) return;
  const std::string ids = print_iota(mesh.device_ids);
  append(out, ", device_ids=({})", mesh.device_ids.is_iota() ? ids.substr(2) : ids);
}

void append_named(std::string* out, const ShardingSpelling& s) {
  GSPMD_CHECK(s.mesh_name.empty() || !s.mesh.axes.empty() || s.mesh.maximal_device,
              "a sharding over the mesh @" + s.mesh_name + " has no spelling in HLO");
  append_hlo_mesh(out, s.mesh);
  if (s.mesh.maximal_device) return;
  *out += ", ";
  if (s.named_whole) {
    *out += to_string(*s.named_whole);
    return;
  }
  *out += print_dims(s.dims, Quote::kHlo);
  append_axis_sets(out, s, Quote::kHlo);
  if (!s.manual_axes.empty()) {
    append(out, ", manual={}", print_axes(s.manual_axes, Quote::kHlo));
  }
}

void append_tiled(std::string* out, const ShardingSpelling& s) {
  append(out, "devices=[{}]{}", fmt::join(s.tile_dims, ","), print_iota(s.devices));
  if (s.subgroups.empty()) return;
  if (s.subgroups.size() == 1 && s.subgroups[0] == SubgroupType::kReplicated &&
      !s.subgroups_spelled_as_list) {
    *out += " last_tile_dim_replicate";
    return;
  }
  *out += " last_tile_dims={";
  for (size_t i = 0; i < s.subgroups.size(); ++i) {
    append(out, "{}{}", i > 0 ? ", " : "", to_string(s.subgroups[i]));
  }
  *out += "}";
}

void append_kind(std::string* out, const ShardingSpelling& s) {
  switch (s.kind) {
    case Kind::kReplicated:
      *out += "replicated";
      return;
    case Kind::kMaximal:
      append(out, "maximal device={}", s.device);
      return;
    case Kind::kManual:
      *out += "manual";
      return;
    case Kind::kUnknown:
      *out += "unknown";
      return;
    case Kind::kUnreduced:
      *out += "unreduced";
      return;
    case Kind::kTiled:
      append_tiled(out, s);
      return;
    case Kind::kNamed:
      append_named(out, s);
      return;
    case Kind::kTuple:
      break;
  }
  GSPMD_CHECK(false, "a tuple inside the sharding of a tuple");
}

std::string print_hlo_tuple(const std::vector<ShardingSpelling>& elements) {
  std::string out = "{";
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i > 0) out += ", ";
    if (i > 0 && i % 5 == 0) append(&out, "/*index={}*/", i);
    out += print_hlo_sharding(elements[i]);
  }
  return out + "}";
}

std::string print_sdy_body(const ShardingSpelling& s) {
  GSPMD_CHECK(s.kind == Kind::kNamed && !s.named_whole,
              "only a named sharding with its dimensions has a spelling in sdy");
  std::string out = "<";
  if (s.mesh_name.empty()) {
    append(&out, "mesh{}", print_sdy_mesh_body(s.mesh));
  } else {
    const bool plain = s.mesh_name.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$-") ==
                       std::string::npos;
    out += "@";
    if (plain) out += s.mesh_name;
    if (!plain) append_quoted(&out, s.mesh_name, Quote::kSdy);
  }
  append(&out, ", {}", print_dims(s.dims, Quote::kSdy));
  append_axis_sets(&out, s,
                   Quote::kSdy);  // manual axes are those of the region that the value stands in
  return out + ">";
}

}  // namespace

std::string print_iota(const IdList& ids) {
  if (!ids.is_iota()) return fmt::format("{}", fmt::join(ids.ids, ","));
  std::string out = fmt::format("<=[{}]", fmt::join(ids.reshape, ","));
  if (ids.reshape.size() > 1) append(&out, "T({})", fmt::join(ids.perm, ","));
  return out;
}

std::string print_hlo_sharding(const ShardingSpelling& s) {
  if (s.kind == Kind::kTuple) return print_hlo_tuple(s.elements);
  std::string out = "{";
  append_kind(&out, s);
  // The named form separates its parts by commas, the others by blanks.
  const std::string_view separator = s.kind == Kind::kNamed ? ", " : " ";
  if (s.group != Group::kNone) {
    append(&out, "{}{} {}", separator, s.group == Group::kShardAs ? "shard_as" : "shard_like",
           s.group_id);
  }
  if (!s.metadata.empty()) append(&out, "{}metadata={}", separator, s.metadata);
  return out + "}";
}

std::string print_sdy_sharding(const ShardingSpelling& s) {
  if (s.kind != Kind::kTuple) return "#sdy.sharding" + print_sdy_body(s);
  std::string out = "#sdy.sharding_per_value<[";
  for (size_t i = 0; i < s.elements.size(); ++i) {
    append(&out, "{}{}", i > 0 ? ", " : "", print_sdy_body(s.elements[i]));
  }
  return out + "]>";
}

std::string print_sdy_mesh(const NamedMesh& mesh) {
  return "#sdy.mesh" + print_sdy_mesh_body(mesh);
}

std::string print_sdy_manual_axes(const std::vector<NamedAxis>& axes) {
  return "#sdy<manual_axes" + print_axes(axes, Quote::kSdy) + ">";
}

}  // namespace gspmd
