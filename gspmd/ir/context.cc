#include "gspmd/ir/context.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace gspmd {
namespace {

// What identifies a shape: its own fields, elements by address.
struct ShapeKey {
  ElementType type;
  absl::Span<const int64_t> dims;
  uint64_t dynamic;
  const Layout* layout;
  absl::Span<const Shape> elements;

  friend bool operator==(const ShapeKey& a, const ShapeKey& b) {
    return a.type == b.type && a.dynamic == b.dynamic && a.layout == b.layout && a.dims == b.dims &&
           a.elements == b.elements;
  }
  template <typename H>
  friend H AbslHashValue(H h, const ShapeKey& k) {
    return H::combine(std::move(h), k.type, k.dims, k.dynamic, k.layout, k.elements);
  }
};

struct LayoutKey {
  absl::Span<const int64_t> minor_to_major;
  std::string_view rest;
  friend bool operator==(const LayoutKey& a, const LayoutKey& b) {
    return a.minor_to_major == b.minor_to_major && a.rest == b.rest;
  }
  template <typename H>
  friend H AbslHashValue(H h, const LayoutKey& k) {
    return H::combine(std::move(h), k.minor_to_major, k.rest);
  }
};

bool is_default_layout(absl::Span<const int64_t> minor_to_major) {
  int64_t rank = static_cast<int64_t>(minor_to_major.size());
  for (int64_t i = 0; i < rank; ++i) {
    if (minor_to_major[i] != rank - 1 - i) return false;
  }
  return true;
}

}  // namespace

struct Context::Impl {
  absl::flat_hash_set<std::string_view> names;
  absl::flat_hash_map<ShapeKey, Shape> shapes;
  absl::flat_hash_map<LayoutKey, const Layout*> layouts;
  std::deque<ShardingSpelling> spellings;
  absl::flat_hash_map<std::string, const ShardingSpelling*> spellings_by_text;
  std::deque<DeviceGroups> groups;
  std::deque<DevicePermutation> permutations;
  std::vector<std::pair<const void*, std::shared_ptr<void>>> extensions;  // few
};

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::~Context() = default;

std::shared_ptr<void>& Context::extension_slot(const void* key) {
  for (auto& [k, slot] : impl_->extensions) {
    if (k == key) return slot;
  }
  return impl_->extensions.emplace_back(key, nullptr).second;
}

std::string_view Context::name(std::string_view text) {
  auto it = impl_->names.find(text);
  if (it != impl_->names.end()) return *it;
  std::string_view kept = arena_.text(text);
  impl_->names.insert(kept);
  return kept;
}

Shape Context::array(ElementType type, absl::Span<const int64_t> dims, const Layout* layout,
                     uint64_t dynamic) {
  ShapeKey key{type, dims, dynamic, layout, {}};
  auto it = impl_->shapes.find(key);
  if (it != impl_->shapes.end()) return it->second;
  ShapeData* data = arena_.make<ShapeData>();
  data->type = type;
  data->dims = arena_.dims(dims);
  data->dynamic = dynamic;
  data->layout = layout;
  Shape shape(data);
  if (layout != nullptr) {
    data->plain = arena_.make<Shape>(array(type, dims, nullptr, dynamic));
  }
  impl_->shapes.emplace(ShapeKey{type, data->dims.span(), dynamic, layout, {}}, shape);
  return shape;
}

Shape Context::tuple(absl::Span<const Shape> elements) {
  ShapeKey key{ElementType::kTuple, {}, 0, nullptr, elements};
  auto it = impl_->shapes.find(key);
  if (it != impl_->shapes.end()) return it->second;
  ShapeData* data = arena_.make<ShapeData>();
  data->elements = arena_.copy(elements);
  data->num_leaves = 0;
  for (Shape e : elements) data->num_leaves += e.num_leaves();
  Shape shape(data);
  std::vector<Shape> plain(elements.size());
  std::transform(elements.begin(), elements.end(), plain.begin(),
                 [](Shape s) { return s.plain(); });
  if (!std::equal(plain.begin(), plain.end(), elements.begin())) {
    data->plain = arena_.make<Shape>(tuple(plain));
  }
  impl_->shapes.emplace(ShapeKey{ElementType::kTuple, {}, 0, nullptr, data->elements}, shape);
  return shape;
}

Shape Context::token() { return array(ElementType::kToken, {}); }

Shape Context::with_dims(Shape shape, absl::Span<const int64_t> dims) {
  return array(shape.type(), dims, shape.layout());
}

Shape Context::with_type(Shape shape, ElementType type) {
  return array(type, shape.dims(), shape.layout());
}

const Layout* Context::layout(absl::Span<const int64_t> minor_to_major, std::string_view rest) {
  if (rest.empty() && is_default_layout(minor_to_major)) return nullptr;
  LayoutKey key{minor_to_major, rest};
  auto it = impl_->layouts.find(key);
  if (it != impl_->layouts.end()) return it->second;
  Layout* kept = arena_.make<Layout>();
  kept->minor_to_major = arena_.dims(minor_to_major);
  kept->rest = arena_.text(rest);
  impl_->layouts.emplace(LayoutKey{kept->minor_to_major.span(), kept->rest}, kept);
  return kept;
}

const ShardingSpelling* Context::spelling(const ShardingSpelling& s) {
  std::string text = print_hlo_sharding(s);
  text += s.mesh_name;
  auto [it, is_new] = impl_->spellings_by_text.try_emplace(std::move(text), nullptr);
  if (is_new) it->second = &impl_->spellings.emplace_back(s);
  return it->second;
}

const DeviceGroups* Context::groups(const DeviceGroups& g) {
  for (const DeviceGroups& known : impl_->groups) {  // a module has few kinds of groups
    if (known == g) return &known;
  }
  return &impl_->groups.emplace_back(g);
}

const DevicePermutation* Context::permutation(const DevicePermutation& p) {
  return &impl_->permutations.emplace_back(p);
}

Provenance Context::provenance(absl::Span<const Cause> causes) { return arena_.copy(causes); }

Provenance Context::merge(Provenance a, Provenance b) {
  if (b.empty() || a == b || a.size() >= kMaxCauses) return a;
  if (a.empty()) return b;
  std::vector<Cause> all(a.begin(), a.end());
  for (const Cause& c : b) {
    if (all.size() < kMaxCauses && std::find(a.begin(), a.end(), c) == a.end()) all.push_back(c);
  }
  return all.size() == a.size() ? a : provenance(all);
}

}  // namespace gspmd
