#include "gspmd/partition/emitter.h"

#include <fmt/format.h>

#include "gspmd/base/check.h"
#include "gspmd/partition/localize.h"

namespace gspmd {

Emitter::Source::Source(Emitter& e, const Instr& source, Reason reason, std::string_view fact)
    : emitter_(e), metadata_(e.metadata_), provenance_(e.provenance_), source_(e.source_) {
  e.metadata_ = source.metadata;
  e.source_ = &source;
  Cause cause{source.name, source.metadata, reason, fact};
  e.provenance_ =
      source.provenance.empty() ? e.context_.provenance({&cause, 1}) : source.provenance;
}

Emitter::Source::~Source() {
  emitter_.metadata_ = metadata_;
  emitter_.provenance_ = provenance_;
  emitter_.source_ = source_;
}

Emitter::Because::Because(Emitter& e, Reason reason, std::string_view fact)
    : emitter_(e), provenance_(e.provenance_) {
  if (e.source_ == nullptr) return;
  Cause cause{e.source_->name, e.source_->metadata, reason, fact};
  e.provenance_ = e.context_.provenance({&cause, 1});
}

Instr* Emitter::add(Opcode opcode, Shape shape, absl::Span<Instr* const> operands, Attrs attrs,
                    std::string_view name) {
  Instr* i = out_.add(computation_, opcode, shape, operands, attrs, name);
  i->metadata = metadata_;
  i->provenance = provenance_;
  return i;
}

Shape Emitter::local_shape(Shape shape, absl::Span<const Sharding> leaves) {
  if (!shape.is_array()) return gspmd::local_shape(context_, shape, leaves);
  Shape& memo = local_shapes_[{shape, leaves[0]}];
  if (!memo) memo = gspmd::local_shape(context_, shape, leaves);
  return memo;
}

Instr* Emitter::integer(ElementType type, int64_t value) {
  Instr*& memo = integers_[{type, value}];
  if (memo == nullptr) memo = scalar(integer_literal(context_, type, value));
  return memo;
}

Instr* Emitter::zero(ElementType type) { return identity(Combiner::kSum, type); }

Instr* Emitter::identity(Combiner c, ElementType type) {
  Instr*& memo = identities_[{type, c}];
  if (memo == nullptr) memo = scalar(identity_literal(context_, c, type));
  return memo;
}

Instr* Emitter::scalar(const Literal& value) {
  return add(Opcode::kConstant, value.shape, {},
             ConstantAttrs{context_.arena().make<Literal>(value)});
}

Instr* Emitter::broadcast(Instr* scalar, absl::Span<const int64_t> dims) {
  if (dims.empty()) return scalar;
  return broadcast(scalar, dims, {});
}

Instr* Emitter::broadcast(Instr* value, absl::Span<const int64_t> dims,
                          absl::Span<const int64_t> operand_dims) {
  Shape shape = context_.array(value->shape.type(), dims);
  return add(Opcode::kBroadcast, shape, {value}, DimsAttrs{context_.dims(operand_dims)});
}

Instr* Emitter::iota(ElementType type, absl::Span<const int64_t> dims, int64_t dimension) {
  return add(Opcode::kIota, context_.array(type, dims), {}, IotaAttrs{dimension});
}

Instr* Emitter::binary(Opcode op, Instr* a, Instr* b) { return add(op, a->shape.plain(), {a, b}); }

Instr* Emitter::compare(Direction direction, Instr* a, Instr* b) {
  Shape shape = context_.array(ElementType::kPred, a->shape.dims());
  return add(Opcode::kCompare, shape, {a, b}, CompareAttrs{direction, CompareType::kDefault});
}

Instr* Emitter::select(Instr* predicate, Instr* on_true, Instr* on_false) {
  return add(Opcode::kSelect, on_true->shape, {predicate, on_true, on_false});
}

Instr* Emitter::clamp(Instr* low, Instr* x, Instr* high) {
  return add(Opcode::kClamp, x->shape, {low, x, high});
}

Instr* Emitter::convert(Instr* x, ElementType type) {
  if (x->shape.type() == type) return x;
  return add(Opcode::kConvert, context_.with_type(x->shape, type), {x});
}

Instr* Emitter::reshape(Instr* x, absl::Span<const int64_t> dims) {
  if (x->shape.dims().span() == dims) return x;
  return add(Opcode::kReshape, context_.array(x->shape.type(), dims), {x}, ReshapeAttrs{});
}

Instr* Emitter::transpose(Instr* x, absl::Span<const int64_t> permutation) {
  DimVector dims;
  bool identity = true;
  for (size_t k = 0; k < permutation.size(); ++k) {
    dims.push_back(x->shape.dim(static_cast<int>(permutation[k])));
    identity &= permutation[k] == static_cast<int64_t>(k);
  }
  if (identity) return x;
  return add(Opcode::kTranspose, context_.array(x->shape.type(), dims), {x},
             DimsAttrs{context_.dims(permutation)});
}

Instr* Emitter::slice(Instr* x, int dim, int64_t start, int64_t limit, int64_t stride) {
  if (start == 0 && limit == x->shape.dim(dim) && stride == 1) return x;
  DimVector starts(x->shape.rank(), 0), limits(x->shape.dims().begin(), x->shape.dims().end()),
      strides(x->shape.rank(), 1), dims(limits);
  starts[dim] = start;
  limits[dim] = limit;
  strides[dim] = stride;
  dims[dim] = ceil_div(limit - start, stride);
  return add(Opcode::kSlice, context_.with_dims(x->shape, dims), {x},
             SliceAttrs{context_.dims(starts), context_.dims(limits), context_.dims(strides)});
}

Instr* Emitter::pad(Instr* x, int dim, int64_t low, int64_t high, int64_t interior, Instr* value) {
  if (low == 0 && high == 0 && interior == 0) return x;
  int rank = x->shape.rank();
  DimVector lows(rank, 0), highs(rank, 0), interiors(rank, 0),
      dims(x->shape.dims().begin(), x->shape.dims().end());
  lows[dim] = low;
  highs[dim] = high;
  interiors[dim] = interior;
  dims[dim] += low + high + std::max<int64_t>(dims[dim] - 1, 0) * interior;
  return add(Opcode::kPad, context_.with_dims(x->shape, dims), {x, value},
             PadAttrs{context_.dims(lows), context_.dims(highs), context_.dims(interiors)});
}

Instr* Emitter::dynamic_slice(Instr* x, int dim, Instr* start, int64_t size) {
  DimVector sizes(x->shape.dims().begin(), x->shape.dims().end());
  sizes[dim] = size;
  std::vector<Instr*> operands(x->shape.rank() + 1, integer(start->shape.type(), 0));
  operands[0] = x;
  operands[dim + 1] = start;
  return add(Opcode::kDynamicSlice, context_.with_dims(x->shape, sizes), operands,
             context_.attrs(DynamicSliceAttrs{context_.dims(sizes)}));
}

Instr* Emitter::dynamic_update_slice(Instr* x, Instr* update, int dim, Instr* start) {
  std::vector<Instr*> operands(x->shape.rank() + 2, integer(start->shape.type(), 0));
  operands[0] = x;
  operands[1] = update;
  operands[dim + 2] = start;
  return add(Opcode::kDynamicUpdateSlice, x->shape, operands);
}

ElementType Emitter::index_type(int64_t size) {
  return size < (int64_t{1} << 30) ? ElementType::kS32 : ElementType::kS64;
}

// The device's place in the mesh's order.
Instr* Emitter::position(const Mesh& mesh, ElementType type) {
  auto key = std::make_pair(AxisList{}, std::make_pair(&mesh, type));
  Instr*& memo = coordinates_[key];
  if (memo != nullptr) return memo;
  Instr* id = add(Opcode::kPartitionId, context_.scalar(ElementType::kU32), {});
  Instr* position = convert(id, type);
  if (mesh.has_device_table()) {
    int64_t n = mesh.num_devices();
    absl::Span<int32_t> table = context_.arena().array<int32_t>(static_cast<size_t>(n));
    for (int64_t p = 0; p < n; ++p) table[mesh.device_of_position()[p]] = static_cast<int32_t>(p);
    Shape shape = context_.array(ElementType::kS32, {n});
    Literal literal;
    literal.shape = shape;
    literal.data = {reinterpret_cast<const std::byte*>(table.data()), table.size() * 4};
    Instr* constant = scalar(literal);
    position =
        convert(reshape(dynamic_slice(constant, 0, convert(id, ElementType::kS32), 1), {}), type);
  }
  return coordinates_[key] = position;
}

// Axes that are neighbours in the mesh's order: one division and one remainder.
Instr* Emitter::coordinate_run(const Mesh& mesh, const AxisList& axes, ElementType type) {
  Instr* x = position(mesh, type);
  int64_t stride = mesh.stride(axes.back());
  if (stride > 1) x = binary(Opcode::kDivide, x, integer(type, stride));
  if (axes[0] > 0) x = binary(Opcode::kRemainder, x, integer(type, mesh.product(axes)));
  return x;
}

Instr* Emitter::coordinate(const Mesh& mesh, const AxisList& axes, ElementType type) {
  if (axes.empty()) return integer(type, 0);
  auto key = std::make_pair(axes, std::make_pair(&mesh, type));
  auto it = coordinates_.find(key);
  if (it != coordinates_.end()) return it->second;
  Instr* sum = nullptr;
  for (int begin = 0, end = 0; begin < axes.size(); begin = end) {
    end = begin + 1;
    while (end < axes.size() && axes[end] == axes[end - 1] + 1) ++end;
    Instr* run = coordinate_run(mesh, axes.slice(begin, end), type);
    int64_t weight = mesh.product(axes.slice(end, axes.size()));
    if (weight > 1) run = binary(Opcode::kMultiply, run, integer(type, weight));
    sum = sum == nullptr ? run : binary(Opcode::kAdd, sum, run);
  }
  return coordinates_[key] = sum;
}

Instr* Emitter::offset(const Mesh& mesh, const AxisList& axes, int64_t block, ElementType type) {
  Instr* c = coordinate(mesh, axes, type);
  return block == 1 || axes.empty() ? c : binary(Opcode::kMultiply, c, integer(type, block));
}

CollectiveAttrs Emitter::collective_attrs(const Mesh& mesh, const AxisList& axes,
                                          absl::Span<const int64_t> dims) {
  CollectiveAttrs a;
  a.dimensions = context_.dims(dims);
  const DeviceGroups*& groups = groups_[{axes, &mesh}];
  if (groups == nullptr) groups = context_.groups(groups_along(mesh, axes));
  a.groups = groups;
  a.channel_id = 1;
  a.use_global_device_ids = true;
  return a;
}

Instr* Emitter::all_gather(Instr* x, int dim, const Mesh& mesh, const AxisList& axes) {
  DimVector dims(x->shape.dims().begin(), x->shape.dims().end());
  dims[dim] *= mesh.product(axes);
  if (x->shape.num_elements() == 0) return broadcast(zero(x->shape.type()), dims);
  return add(Opcode::kAllGather, context_.with_dims(x->shape, dims), {x},
             collective_attrs(mesh, axes, {dim}));
}

Instr* Emitter::add_reducing(Opcode opcode, Shape shape, Instr* x, const CollectiveAttrs& attrs,
                             Combiner combiner) {
  Instr* r = add(opcode, shape, {x}, attrs);
  Computation* f = reducers_.get(combiner, x->shape.type());
  r->called = out_.computation_array({&f, 1});
  return r;
}

Instr* Emitter::all_reduce(Instr* x, const Mesh& mesh, const AxisList& axes, Combiner combiner) {
  if (x->shape.num_elements() == 0) return x;
  return add_reducing(Opcode::kAllReduce, x->shape, x, collective_attrs(mesh, axes, {}), combiner);
}

Instr* Emitter::reduce_scatter(Instr* x, int dim, const Mesh& mesh, const AxisList& axes,
                               Combiner combiner) {
  DimVector dims(x->shape.dims().begin(), x->shape.dims().end());
  dims[dim] /= mesh.product(axes);
  if (x->shape.num_elements() == 0) return broadcast(zero(x->shape.type()), dims);
  return add_reducing(Opcode::kReduceScatter, context_.with_dims(x->shape, dims), x,
                      collective_attrs(mesh, axes, {dim}), combiner);
}

Instr* Emitter::all_to_all(Instr* x, int dimension, const Mesh& mesh, const AxisList& axes) {
  if (x->shape.num_elements() == 0) return x;
  CollectiveAttrs a = collective_attrs(mesh, axes, {dimension});
  a.use_global_device_ids = false;  // all-to-all: a channel alone means partition ids
  return add(Opcode::kAllToAll, x->shape, {x}, a);
}

Instr* Emitter::collective_permute(Instr* x, const Mesh& mesh,
                                   const DevicePermutation& permutation) {
  if (x->shape.num_elements() == 0) return x;
  PermuteAttrs a;
  a.permutation = context_.permutation(permutation);
  a.mesh = &mesh;
  a.channel_id = 1;
  return add(Opcode::kCollectivePermute, x->shape, {x}, a);
}

Instr* Emitter::collective_permute(Instr* x, std::vector<std::pair<int64_t, int64_t>> pairs) {
  if (x->shape.num_elements() == 0) return x;
  PermuteAttrs a;
  a.pairs = context_.arena().copy(absl::MakeConstSpan(pairs));
  a.channel_id = 1;
  return add(Opcode::kCollectivePermute, x->shape, {x}, a);
}

Computation* ReducerPool::get(Combiner combiner, ElementType type) {
  Computation*& made = made_[{combiner, type}];
  if (made != nullptr) return made;
  Context& context = module_.context();
  made = module_.add_computation(fmt::format("{}_{}", to_string(combiner), name_of(type)));
  all_.push_back(made);
  Shape shape = context.scalar(type);
  Instr* a =
      module_.add(made, Opcode::kParameter, shape, {}, context.attrs(ParameterAttrs{0}), "a");
  Instr* b =
      module_.add(made, Opcode::kParameter, shape, {}, context.attrs(ParameterAttrs{1}), "b");
  made->set_root(module_.add(made, opcode_of(combiner), shape, {a, b}, {}, "r"));
  return made;
}

Opcode opcode_of(Combiner c) {
  switch (c) {
    case Combiner::kSum:
      return Opcode::kAdd;
    case Combiner::kProduct:
      return Opcode::kMultiply;
    case Combiner::kMin:
      return Opcode::kMinimum;
    case Combiner::kMax:
      return Opcode::kMaximum;
    case Combiner::kAnd:
      return Opcode::kAnd;
    case Combiner::kOr:
      return Opcode::kOr;
    case Combiner::kXor:
      return Opcode::kXor;
    case Combiner::kNone:
      break;
  }
  GSPMD_CHECK(false, "no operator for this combiner");
}

}  // namespace gspmd
