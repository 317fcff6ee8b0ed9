#include "gspmd/propagate/values.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <fmt/format.h>

#include <numeric>

#include "gspmd/ops/custom_call.h"

namespace gspmd {
namespace {

bool is_boundary(const Instr& i) {
  if (i.opcode != Opcode::kCustomCall) return false;
  std::string_view t = i.attrs<CustomCallAttrs>().target;
  return t == "SPMDFullToShardShape" || t == "SPMDShardToFullShape";
}

class Builder {
 public:
  Builder(ValueTable& t, const Module& m, MeshRefinement& r, const PropagateOptions& o)
      : t_(t), m_(m), r_(r), o_(o) {}

  void run() {
    number();
    annotate();
    fix_interface();
    share_aliased();
    connect();
    make_values();
    mark_manual();
  }

 private:
  struct Leaf {
    const Instr* instr;
    int index;
    Shape shape;
  };

  void number() {
    t_.first_leaf.assign(m_.num_ids(), UINT32_MAX);
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) {
        t_.first_leaf[i->id] = static_cast<uint32_t>(leaves_.size());
        for_each_leaf(i->shape, [&](Shape s, int k) { leaves_.push_back({i, k, s}); });
      }
    }
    parent_.resize(leaves_.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    annotation_.assign(leaves_.size(), -1);
  }

  void annotate() {
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) {
        if (i->annotation == nullptr && i->extras == nullptr) continue;
        std::vector<Annotation> found;
        try {
          found = annotations_of(*i, r_);
        } catch (Error& e) {
          throw error_at(m_, *i, e.message(), e.hint(), e.code());
        }
        for (size_t k = 0; k < found.size(); ++k) {
          check_devices(*i, found[k]);
          set_annotation(t_.first_leaf[i->id] + static_cast<uint32_t>(k), found[k]);
        }
      }
    }
  }

  // A value on some of the devices only has no layout over the module's mesh.
  void check_devices(const Instr& i, const Annotation& a) const {
    if (a.unknown || a.sharding.mesh().num_devices() == r_.mesh()->num_devices()) return;
    throw error_at(m_, i,
                   fmt::format("the sharding names {} of {} devices",
                               a.sharding.mesh().num_devices(), r_.mesh()->num_devices()),
                   "give every device a tile; for copies add last_tile_dim_replicate", "GS2001");
  }

  void set_annotation(uint32_t leaf, const Annotation& a) {
    if (a.group != ShardingSpelling::Group::kNone) groups_.emplace_back(leaf, a);
    if (a.unknown) return;
    annotation_[leaf] = static_cast<int>(annotations_.size());
    annotations_.push_back(a);
  }

  // Entry parameters and results without annotation are whole, unless the header or an option lets
  // completion choose.
  void fix_interface() {
    const Computation& entry = *m_.entry();
    const auto& to_parameters = m_.attrs.propagate_to_parameters;
    size_t flag = 0;
    for (const Instr* p : entry.params()) {
      for (int k = 0; k < p->shape.num_leaves(); ++k, ++flag) {
        size_t at = to_parameters.size() == entry.params().size()
                        ? static_cast<size_t>(p->attrs<ParameterAttrs>().number)
                        : flag;
        bool free =
            o_.propagate_to_parameters ||
            (!to_parameters.empty() && to_parameters[std::min(at, to_parameters.size() - 1)]);
        fix(t_.first_leaf[p->id] + static_cast<uint32_t>(k), free);
      }
    }
    const Instr* root = entry.root();
    const auto& to_output = m_.attrs.propagate_to_output;
    for (int k = 0; k < root->shape.num_leaves(); ++k) {
      bool free = o_.propagate_to_output ||
                  (!to_output.empty() &&
                   to_output[std::min<size_t>(static_cast<size_t>(k), to_output.size() - 1)]);
      if (root->opcode != Opcode::kParameter)
        fix(t_.first_leaf[root->id] + static_cast<uint32_t>(k), free);
    }
  }

  void fix(uint32_t leaf, bool free) {
    if (annotation_[leaf] >= 0) return;
    if (free) {
      even_.push_back(leaf);
      return;
    }
    Annotation whole;
    whole.sharding = m_.context().shardings().replicated(
        r_.mesh(), leaves_[leaf].shape.is_array() ? leaves_[leaf].shape.rank() : 0);
    annotation_[leaf] = static_cast<int>(annotations_.size());
    annotations_.push_back(whole);
    by_default_.insert(leaf);
  }

  void connect() {
    // First what must be alike; a reshard can stand between a tuple and its parts.
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) connect_called(*i);
    }
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) connect_parts(*i);
    }
    absl::flat_hash_map<int64_t, uint32_t> first_of_group;
    for (const auto& [leaf, a] : groups_) {
      auto [it, is_new] = first_of_group.try_emplace(a.group_id, leaf);
      if (!is_new && leaves_[leaf].shape.plain() == leaves_[it->second].shape.plain())
        join(it->second, leaf);
    }
  }

  // An aliased parameter and result share a layout: that of the one that has one of its own.
  void share_aliased() {
    const Computation& entry = *m_.entry();
    for (const Alias& a : m_.attrs.aliases) {
      if (a.output_index.size() > 1 || !a.parameter_index.empty()) continue;
      if (a.parameter < 0 || a.parameter >= static_cast<int64_t>(entry.params().size())) continue;
      const Instr *p = entry.params()[a.parameter], *root = entry.root();
      int64_t k = a.output_index.empty() ? 0 : a.output_index[0];
      bool flat =
          root->shape.is_tuple()
              ? k < static_cast<int64_t>(root->shape.elements().size()) &&
                    root->shape.num_leaves() == static_cast<int>(root->shape.elements().size())
              : k == 0;
      if (!flat || !p->shape.is_array()) continue;
      uint32_t from = t_.first_leaf[p->id], to = t_.first_leaf[root->id] + static_cast<uint32_t>(k);
      if (by_default_.contains(from)) std::swap(from, to);
      if (!by_default_.contains(from) && by_default_.erase(to) > 0) {
        annotation_[to] = annotation_[from];
      }
      join(from, to);
    }
  }

  void connect_parts(const Instr& i) {
    uint32_t at = t_.first_leaf[i.id];
    if (i.opcode == Opcode::kTuple) {
      for (const Instr* o : i.operands) at = join_all(*o, 0, at, o->shape.num_leaves());
    } else if (i.opcode == Opcode::kGetTupleElement) {
      int offset = leaf_offset(i.operand(0)->shape, static_cast<int>(i.attrs<IndexAttrs>().index));
      join_all(*i.operand(0), offset, at, i.shape.num_leaves());
    }
  }

  void connect_called(const Instr& i) {
    switch (i.opcode) {
      case Opcode::kWhile:
        alike(i, *i.operand(0));
        alike(i, *i.called[0]->params()[0]);
        alike(i, *i.called[1]->params()[0]);
        alike(i, *i.called[1]->root());
        break;
      case Opcode::kConditional:
        for (size_t k = 0; k < i.called.size(); ++k) {
          alike(*i.operand(static_cast<int>(k) + 1), *i.called[k]->params()[0]);
          alike(i, *i.called[k]->root());
        }
        break;
      case Opcode::kCall:
      case Opcode::kFusion:
      case Opcode::kAsyncStart:
        if (i.called.empty()) break;
        for (int k = 0; k < i.num_operands(); ++k) alike(*i.operand(k), *i.called[0]->params()[k]);
        if (i.opcode != Opcode::kAsyncStart) alike(i, *i.called[0]->root());
        break;
      case Opcode::kOptimizationBarrier:
      case Opcode::kDomain:
        alike(i, *i.operand(0));
        break;
      default:
        break;
    }
  }

  void alike(const Instr& a, const Instr& b) {
    join_all(a, 0, t_.first_leaf[b.id], b.shape.num_leaves());
  }

  uint32_t join_all(const Instr& a, int offset, uint32_t at, int n) {
    uint32_t from = t_.first_leaf[a.id] + static_cast<uint32_t>(offset);
    for (int k = 0; k < n; ++k)
      join(from + static_cast<uint32_t>(k), at + static_cast<uint32_t>(k));
    return at + static_cast<uint32_t>(n);
  }

  uint32_t find(uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }

  // A parameter or result that is whole only because nobody said otherwise makes nothing else
  // whole.

  // Two that are annotated differently stay apart: a reshard stands between them.
  void join(uint32_t a, uint32_t b) {
    if (by_default_.contains(a) || by_default_.contains(b)) return;
    a = find(a);
    b = find(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    int x = annotation_[a], y = annotation_[b];
    if (x >= 0 && y >= 0) {
      if (annotations_[x].sharding != annotations_[y].sharding) return;
      annotations_[x].open_dims &= annotations_[y].open_dims;
    }
    parent_[b] = a;
    if (x < 0) annotation_[a] = y;
  }

  void make_values() {
    t_.value_of.resize(leaves_.size());
    t_.values.reserve(leaves_.size());
    for (uint32_t k = 0; k < leaves_.size(); ++k) {
      uint32_t root = find(k);
      if (root != k) {
        t_.value_of[k] = t_.value_of[root];
        continue;
      }
      t_.value_of[k] = static_cast<uint32_t>(t_.values.size());
      PropagatedValue v;
      v.shape = leaves_[k].shape;
      v.bytes = v.shape.bytes();
      v.instr = leaves_[k].instr;
      v.leaf = leaves_[k].index;
      v.first_dim = static_cast<uint32_t>(t_.dims.size());
      int rank = v.shape.is_array() ? v.shape.rank() : 0;
      t_.dims.resize(t_.dims.size() + static_cast<size_t>(rank));
      if (annotation_[k] >= 0) place(annotations_[annotation_[k]], &v);
      t_.values.push_back(v);
    }
    for (uint32_t leaf : even_) t_.values[t_.value_of[leaf]].even = true;
  }

  void place(const Annotation& a, PropagatedValue* v) {
    const ShardingData& s = *a.sharding;
    v->annotated = true;
    v->closed = ~a.open_dims;
    v->replicated = s.replicated;
    v->manual = s.manual;
    v->pending = s.pending;
    v->combiner = s.combiner;
    v->used = s.replicated | s.manual | s.pending;
    if (s.mesh != r_.mesh()) v->mesh = s.mesh;
    if (v->mesh != nullptr) v->closed = ~uint64_t{0};
    for (size_t d = 0; d < s.dims.size(); ++d) {
      if (s.dims[d].empty()) continue;
      int priority = d < a.dim_priority.size() ? a.dim_priority[d] : 0;
      v->used |= s.dims[d].set();
      if (priority == 0) {
        t_.dims[v->first_dim + d] = s.dims[d];
      } else {
        t_.later.emplace_back(priority, v->first_dim + static_cast<uint32_t>(d));
        t_.later_axes.push_back(s.dims[d]);
      }
    }
  }

  // Inside a manual region every value is manual, annotated or not: what is computed from manual
  // values, and what only they use.
  void mark_manual() {
    bool any = false;
    for (const auto& c : m_.computations()) {
      for (const Instr* i : c->instrs()) any |= is_boundary(*i);
    }
    if (!any) return;
    bool changed = true;
    while (changed) {
      changed = false;
      const auto& all = m_.computations();
      for (auto c = all.rbegin(); c != all.rend(); ++c) {
        for (const Instr* i : (*c)->instrs()) changed |= manual_forward(*i);
        for (auto i = (*c)->instrs().rbegin(); i != (*c)->instrs().rend(); ++i)
          changed |= manual_backward(**i);
      }
    }
  }

  AxisSet manual_of(const Instr& i) {
    AxisSet s;
    for (int k = 0; k < i.shape.num_leaves(); ++k) s |= t_.values[t_.value(i, k)].manual;
    return s;
  }

  bool mark(const Instr& i, AxisSet manual) {
    bool changed = false;
    for (int k = 0; k < i.shape.num_leaves(); ++k) {
      PropagatedValue& v = t_.values[t_.value(i, k)];
      if (v.manual.contains_all(manual) || v.mesh != nullptr) continue;
      v.manual |= manual;
      v.used |= manual;
      changed = true;
    }
    return changed;
  }

  bool manual_forward(const Instr& i) {
    if (is_boundary(i) || i.operands.empty()) return false;
    AxisSet s;
    for (const Instr* o : i.operands) s |= manual_of(*o);
    return !s.empty() && mark(i, s);
  }

  bool manual_backward(const Instr& i) {
    if (is_boundary(i) || i.opcode == Opcode::kTuple || i.opcode == Opcode::kGetTupleElement)
      return false;
    AxisSet s = manual_of(i);
    bool changed = false;
    if (s.empty()) return false;
    for (const Instr* o : i.operands) changed |= mark(*o, s);
    return changed;
  }

  ValueTable& t_;
  const Module& m_;
  MeshRefinement& r_;
  const PropagateOptions& o_;
  std::vector<Leaf> leaves_;
  std::vector<uint32_t> parent_;
  std::vector<int> annotation_;  // by leaf: index into annotations_, -1 = none
  std::vector<Annotation> annotations_;
  std::vector<std::pair<uint32_t, Annotation>> groups_;
  std::vector<uint32_t> even_;
  absl::flat_hash_set<uint32_t> by_default_;
};

}  // namespace

ValueTable::ValueTable(const Module& module, MeshRefinement& refinement,
                       const PropagateOptions& options) {
  Builder(*this, module, refinement, options).run();
}

}  // namespace gspmd
