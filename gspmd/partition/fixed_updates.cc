#include "gspmd/partition/fixed_updates.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <optional>

#include "gspmd/partition/emitter.h"
#include "gspmd/partition/manual.h"

namespace gspmd {
namespace {

// Element k of an integer value that is known while compiling.
std::optional<int64_t> known_element(const Instr& i, int64_t k) {
  switch (i.opcode) {
    case Opcode::kConstant:
      return integer_at(*i.attrs<ConstantAttrs>().literal, k);
    case Opcode::kReshape:
    case Opcode::kCopy:
      return known_element(*i.operand(0), k);
    case Opcode::kBroadcast:
      if (!i.operand(0)->shape.is_scalar()) return std::nullopt;
      return known_element(*i.operand(0), 0);
    default:
      return std::nullopt;
  }
}

// An update of x at [start, start + size) of every dimension, all inside of x.
struct Update {
  Instr* x;
  Instr* value;
  DimVector start, size;
  Combiner combiner = Combiner::kNone;  // of what was there with the value; kNone: the value alone
};

class FixedUpdates {
 public:
  FixedUpdates(PartitionState& s, Computation& c, ReducerPool* reducers)
      : s_(s), c_(c), emit_(&s.module, &c, reducers) {}

  void run() {
    std::vector<Instr*> before = c_.instrs(), order;
    Replacements replaced;
    bool any = false;
    for (Instr* i : before) {
      for (Instr*& o : i->operands) o = replaced.current(o);
      size_t first = c_.instrs().size();
      Instr* now = rewritten(i);
      order.insert(order.end(), c_.instrs().begin() + static_cast<std::ptrdiff_t>(first),
                   c_.instrs().end());
      order.push_back(i);
      if (now == nullptr) continue;
      any = true;
      replaced.set(*i, now);
      order.pop_back();
    }
    if (!any) return;
    c_.set_root(replaced.current(c_.root()));
    c_.set_instrs(std::move(order));
  }

 private:
  // What stands for an update; null where it stays.
  Instr* rewritten(Instr* i) {
    std::optional<Update> found;
    if (i->opcode == Opcode::kDynamicUpdateSlice) found = update_of(*i);
    if (i->opcode == Opcode::kScatter) found = scatter_of(*i);
    if (!found || !i->shape.is_array() || !is_worth_it(*found, s_.shardings.leaf(*i)))
      return nullptr;
    update_ = &*found;
    layout_ = s_.shardings.leaf(*i);
    how_.clear();
    lifted_.clear();
    if (how_to_lift(*found->value, kDepth) == Lift::kNever) return nullptr;
    Emitter::Source source(emit_, *i, Reason::kRewrite);
    size_t first = c_.instrs().size();
    Instr* value = lifted(found->value);
    if (found->combiner != Combiner::kNone)
      value = emit_.binary(opcode_of(found->combiner), found->x, value);
    Instr* now = emit_.select(mask(), value, found->x);
    for (size_t k = first; k < c_.instrs().size(); ++k) lay_out(*c_.instrs()[k]);
    return now;
  }

  std::optional<Update> update_of(const Instr& i) const {
    Update u{i.operand(0), i.operand(1), {}, {}};
    for (int d = 0; d < i.shape.rank(); ++d) {
      std::optional<int64_t> start = known_element(*i.operand(2 + d), 0);
      if (!start) return std::nullopt;
      int64_t size = u.value->shape.dim(d);
      u.start.push_back(std::clamp<int64_t>(*start, 0, i.shape.dim(d) - size));
      u.size.push_back(size);
    }
    return u;
  }

  // A scatter of one window.
  std::optional<Update> scatter_of(const Instr& i) const {
    const ScatterAttrs& a = i.attrs<ScatterAttrs>();
    if (i.num_operands() != 3 || !a.inserted_window_dims.empty() ||
        !a.input_batching_dims.empty() || i.operand(1)->shape.rank() != 1 ||
        a.index_vector_dim != 0)
      return std::nullopt;
    const Computation& reducer = *i.called[0];
    Update u{i.operand(0), i.operand(2), DimVector(i.shape.rank(), 0), {}, combiner_of(reducer)};
    bool replaces = reducer.root() == reducer.params()[1];
    if (!replaces && u.combiner == Combiner::kNone) return std::nullopt;
    if (u.value->shape.type() != i.shape.type()) return std::nullopt;
    for (size_t k = 0; k < a.scatter_dims_to_operand_dims.size(); ++k) {
      std::optional<int64_t> start = known_element(*i.operand(1), static_cast<int64_t>(k));
      if (!start) return std::nullopt;
      u.start[static_cast<size_t>(a.scatter_dims_to_operand_dims[k])] = *start;
    }
    for (int d = 0; d < i.shape.rank(); ++d) {
      u.size.push_back(u.value->shape.dim(d));
      int64_t start =
          u.start[static_cast<size_t>(d)];  // a window that is not all inside is dropped
      if (start < 0 || start > i.shape.dim(d) - u.size.back()) return std::nullopt;
    }
    return u;
  }

  bool is_windowed(const Update& u, int d) const {
    return u.size[static_cast<size_t>(d)] != u.x->shape.dim(d);
  }

  // In a dimension that is split, and of at least half of what is there.
  bool is_worth_it(const Update& u, Sharding layout) const {
    bool split = false;
    for (int d = 0; d < layout.rank(); ++d) split |= is_windowed(u, d) && !layout.dim(d).empty();
    return split && u.value->shape.num_elements() * 2 >= u.x->shape.num_elements() &&
           s_.shardings.leaf(*u.x) == layout;
  }

  // The whole value of which `v` is this window, where it is laid out as the result.
  Instr* whole_of(const Instr& v) const {
    if (v.opcode != Opcode::kSlice) return nullptr;
    const SliceAttrs& a = v.attrs<SliceAttrs>();
    Instr* whole = v.operand(0);
    if (whole->shape.dims() != update_->x->shape.dims() || s_.shardings.leaf(*whole) != layout_)
      return nullptr;
    for (size_t d = 0; d < update_->start.size(); ++d) {
      if (a.starts[d] != update_->start[d] || a.strides[d] != 1) return nullptr;
    }
    return whole;
  }

  bool is_splat(const Instr& v) const {
    return v.opcode == Opcode::kBroadcast && v.operand(0)->shape.is_scalar();
  }
  bool is_made_of_elements(const Instr& v) const {
    return def(v).traits.elementwise && v.called.empty() && v.annotation == nullptr &&
           v.num_operands() > 0;
  }
  // Padded, neighbours exchange what the window is shifted by.
  bool is_split_in_window(const Instr& v) const {
    Sharding s = s_.shardings.leaf(v);
    for (int d = 0; d < s.rank(); ++d) {
      if (is_windowed(*update_, d) && !s.dim(d).empty()) return true;
    }
    return false;
  }

  // How a value of the window becomes one of x's dimensions.
  enum class Lift { kNever, kScalar, kWhole, kSplat, kElements, kPadded };

  Lift how_to_lift(const Instr& v, int depth) {
    auto [known, is_new] = how_.try_emplace(&v, Lift::kNever);
    if (!is_new) return known->second;
    Lift how = Lift::kNever;
    if (v.shape.dims() != update_->value->shape.dims()) {
      if (v.shape.is_scalar()) how = Lift::kScalar;
    } else if (whole_of(v) != nullptr) {
      how = Lift::kWhole;
    } else if (is_splat(v)) {
      how = Lift::kSplat;
    } else if (depth > 0 && is_made_of_elements(v) &&
               std::all_of(v.operands.begin(), v.operands.end(), [&](const Instr* o) {
                 return how_to_lift(*o, depth - 1) != Lift::kNever;
               })) {
      how = Lift::kElements;
    } else if (is_split_in_window(v)) {
      how = Lift::kPadded;
    }
    return how_[&v] = how;
  }

  // A value of x's dimensions that is `v` in the window and anything elsewhere.
  Instr* lifted(Instr* v) {
    auto known = lifted_.find(v);
    if (known != lifted_.end()) return known->second;
    return lifted_[v] = lift(v);
  }

  Instr* lift(Instr* v) {
    absl::Span<const int64_t> dims = update_->x->shape.dims();
    switch (how_.at(v)) {
      case Lift::kWhole:
        return whole_of(*v);
      case Lift::kSplat:
        return emit_.broadcast(v->operand(0), dims);
      case Lift::kElements: {
        std::vector<Instr*> operands;
        for (Instr* o : v->operands) operands.push_back(lifted(o));
        return emit_.add(v->opcode, emit_.context().with_dims(v->shape, dims), operands,
                         v->attributes);
      }
      case Lift::kPadded:
        return padded(v);
      default:
        return v;
    }
  }

  Instr* padded(Instr* v) {
    for (int d = 0; d < v->shape.rank(); ++d) {
      size_t k = static_cast<size_t>(d);
      int64_t low = update_->start[k], high = update_->x->shape.dim(d) - low - update_->size[k];
      v = emit_.pad(v, d, low, high, 0, emit_.zero(v->shape.type()));
    }
    return v;
  }

  // Which elements of x are in the window.
  Instr* mask() {
    absl::Span<const int64_t> dims = update_->x->shape.dims();
    Instr* inside = nullptr;
    const auto require = [&](Direction direction, Instr* at, int64_t bound) {
      Instr* to = emit_.broadcast(emit_.integer(at->shape.type(), bound), dims);
      Instr* holds = emit_.compare(direction, at, to);
      inside = inside == nullptr ? holds : emit_.binary(Opcode::kAnd, inside, holds);
    };
    for (int d = 0; d < update_->x->shape.rank(); ++d) {
      if (!is_windowed(*update_, d)) continue;
      size_t k = static_cast<size_t>(d);
      int64_t start = update_->start[k], limit = start + update_->size[k];
      Instr* at = emit_.iota(Emitter::index_type(dims[k]), dims, d);
      if (start > 0) require(Direction::kGe, at, start);
      if (limit < dims[k]) require(Direction::kLt, at, limit);
    }
    return inside;
  }

  void lay_out(const Instr& made) {
    ShardingData data;
    data.mesh = layout_->mesh;
    data.manual = layout_->manual;
    data.dims.resize(static_cast<size_t>(made.shape.rank()));
    bool like_result = made.shape.dims() == update_->x->shape.dims();
    s_.shardings.set(made, like_result ? layout_ : s_.module.context().shardings().intern(data));
  }

  static constexpr int kDepth = 16;
  PartitionState& s_;
  Computation& c_;
  Emitter emit_;
  const Update* update_ = nullptr;  // at hand, and how its result is laid out
  Sharding layout_;
  absl::flat_hash_map<const Instr*, Lift> how_;
  absl::flat_hash_map<const Instr*, Instr*> lifted_;
};

}  // namespace

void make_fixed_updates_selects(PartitionState& state) {
  ReducerPool reducers(&state.module);  // stays empty: selects need none
  for (Computation* c : partitioned_computations(state.module))
    FixedUpdates(state, *c, &reducers).run();
}

}  // namespace gspmd
