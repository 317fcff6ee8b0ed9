#include "gspmd/ops/builder.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "gspmd/ir/float_format.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/ops/own_attrs.h"
#include "gspmd/ops/program_writer.h"
#include "gspmd/sharding/refinement.h"

namespace gspmd {

Expr ProgramWriter::emit(Computation* c, Opcode opcode, Exprs operands, Attrs attrs, Shape stated,
                         absl::Span<Computation* const> called) {
  std::vector<Instr*> instrs;
  std::vector<Shape> shapes;
  for (Expr v : operands) {
    if (v.instr() == nullptr)
      throw Error(fmt::format("{}: an operand is no value", name_of(opcode)));
    if (&v.writer() != this || v.instr()->parent != c) {
      throw Error(fmt::format("{}: operand {} belongs to another computation", name_of(opcode),
                              describe(*v.instr())),
                  "hand it in as a parameter or as part of a loop's state");
    }
    instrs.push_back(v.instr());
    shapes.push_back(v.shape());
  }
  Attrs owned = own_attrs(def(opcode), attrs, context());
  Shape shape = infer_shape(opcode, {context(), shapes, owned, called, stated});
  Instr* i = module_->add(c, opcode, shape, instrs, owned);
  i->called = module_->computation_array(called);
  i->metadata = metadata_;
  verify(*module_, *i);
  return {this, i};
}

Computation* ProgramWriter::define(std::string_view name, absl::Span<const Shape> params,
                                   const Builder::Body& body) {
  Computation* c = module_->add_computation(name);
  Builder b(this, c);
  std::vector<Expr> values;
  for (Shape s : params) values.push_back(b.parameter(fmt::format("p{}", values.size()), s));
  Expr result = body(b, values);
  if (result.instr() == nullptr || result.instr()->parent != c) {
    throw Error(fmt::format("the result of computation {} is not one of its values", name));
  }
  c->set_root(result.instr());
  return c;
}

Computation* ProgramWriter::reducer(Opcode opcode, ElementType type) {
  auto [at, is_new] = reducers_.try_emplace({opcode, type}, nullptr);
  if (!is_new) return at->second;
  const Metadata* metadata = std::exchange(metadata_, nullptr);
  Shape s = context().scalar(type);
  Computation* c = define(fmt::format("{}.{}", name_of(opcode), name_of(type)), {{s, s}},
                          [&](Builder& b, Exprs p) { return b.op(opcode, p); });
  metadata_ = metadata;
  return reducers_[{opcode, type}] = c;
}

namespace {

// Callees before their callers, else in the order of definition; the entry last.
class CalleesFirst {
 public:
  explicit CalleesFirst(const Module& m) {
    for (const auto& c : m.computations()) {
      if (c.get() != m.entry()) visit(c.get());
    }
    visit(m.entry());
  }
  const std::vector<Computation*>& order() const { return order_; }

 private:
  void visit(Computation* c) {
    if (!seen_.insert(c).second) return;
    for (const Instr* i : c->instrs()) {
      for (Computation* callee : i->called) visit(callee);
    }
    order_.push_back(c);
  }
  absl::flat_hash_set<const Computation*> seen_;
  std::vector<Computation*> order_;
};

}  // namespace

std::unique_ptr<Module> ProgramWriter::finish(Expr result) {
  if (owned_ == nullptr) throw Error("build() was called before", "a Builder makes one module");
  Computation* entry = module_->entry();
  if (result.instr() == nullptr || result.instr()->parent != entry) {
    throw Error("the program's result is not a value of its entry computation");
  }
  entry->set_root(result.instr());
  module_->set_computations(CalleesFirst(*module_).order());
  verify(*module_);
  return std::move(owned_);
}

Builder::Builder(std::string_view module_name, int64_t num_partitions,
                 std::shared_ptr<Context> context)
    : owned_(std::make_shared<ProgramWriter>(
          std::make_unique<Module>(std::move(context), module_name))),
      program_(owned_.get()),
      computation_(module().add_computation("main")) {
  module().set_entry(computation_);
  module().attrs.num_partitions = num_partitions;
}

Module& Builder::module() const { return program_->module(); }

Expr Builder::op(Opcode opcode, Exprs operands, Attrs attrs, Shape stated,
                 absl::Span<Computation* const> called) {
  return program_->emit(computation_, opcode, operands, attrs, stated, called);
}

Expr Builder::parameter(std::string_view name, Shape shape) {
  ParameterAttrs attrs{static_cast<int64_t>(computation_->params().size())};
  Expr p = op(Opcode::kParameter, {}, &attrs, shape);
  p.instr()->name = context().name(name);
  return p;
}

namespace {

// The little-endian bits of a number in an array type.
uint64_t bits_of_number(ElementType type, double value) {
  if (type == ElementType::kPred) return value != 0;
  if (is_float(type)) return float_bits(type, value);
  if (type == ElementType::kC64) return float_bits(ElementType::kF32, value);
  if (type == ElementType::kC128) return float_bits(ElementType::kF64, value);
  if (!is_integer(type)) throw Error(fmt::format("constant: {} has no numbers", name_of(type)));
  bool is_signed = class_of(type) == TypeClass::kSigned;
  double limit = std::ldexp(1.0, bits_of(type) - (is_signed ? 1 : 0));
  bool holds = std::trunc(value) == value && value < limit && value >= (is_signed ? -limit : 0);
  if (!holds) {
    throw Error(fmt::format("constant: {} does not hold {}", name_of(type), value),
                fmt::format("whole numbers from {} to {}", is_signed ? -limit : 0, limit - 1));
  }
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value))
                   : static_cast<uint64_t>(value);
}

absl::Span<const std::byte> bytes_in(Arena& arena, const void* from, size_t size) {
  return arena.copy(absl::Span<const std::byte>(static_cast<const std::byte*>(from), size));
}

template <typename T>
Expr constant_of(Builder& b, ElementType type, Ints dims, absl::Span<const T> elements) {
  Shape shape = b.shape(type, dims);
  if (shape.num_elements() != static_cast<int64_t>(elements.size())) {
    throw Error(fmt::format("constant: {} elements for {}", elements.size(), to_string(shape)),
                fmt::format("{} are needed", shape.num_elements()));
  }
  Arena& arena = b.context().arena();
  return b.constant({shape, bytes_in(arena, elements.data(), elements.size() * sizeof(T))});
}

}  // namespace

Expr Builder::scalar(ElementType type, double value) {
  uint64_t bits[2] = {bits_of_number(type, value), 0};
  size_t size = static_cast<size_t>(storage_bytes(type));
  return constant({shape(type), bytes_in(context().arena(), bits, size)});
}

Expr Builder::constant(Ints dims, absl::Span<const float> elements) {
  return constant_of(*this, ElementType::kF32, dims, elements);
}
Expr Builder::constant(Ints dims, absl::Span<const int32_t> elements) {
  return constant_of(*this, ElementType::kS32, dims, elements);
}
Expr Builder::constant(const Literal& literal) {
  ConstantAttrs attrs{context().arena().make<Literal>(literal)};
  return op(Opcode::kConstant, {}, &attrs);
}

Expr Builder::iota(ElementType type, Ints dims, int64_t dimension) {
  IotaAttrs attrs{dimension};
  return op(Opcode::kIota, {}, &attrs, shape(type, dims));
}

Computation* Builder::define(std::string_view name, absl::Span<const Shape> params,
                             const Body& body) {
  return program_->define(name, params, body);
}

void Builder::locate(std::string_view op_name, std::string_view source_file, int32_t line) {
  Metadata m;
  m.op_name = context().name(op_name);
  m.source_file = context().name(source_file);
  m.source_line = line;
  program_->locate(m);
}

std::unique_ptr<Module> Builder::build(Expr result) { return program_->finish(result); }

Expr op(Opcode opcode, Exprs operands, Attrs attrs, Shape stated,
        absl::Span<Computation* const> called) {
  if (operands.empty() || operands[0].instr() == nullptr) {
    throw Error(fmt::format("{}: no operand says where it is written", name_of(opcode)),
                "call the builder's op()");
  }
  Computation* c = operands[0].instr()->parent;
  return operands[0].writer().emit(c, opcode, operands, attrs, stated, called);
}

namespace {

Expr annotate_as(Expr x, const ShardingSpelling& spelling, Ints open) {
  Context& context = x.writer().context();
  Instr& i = *x.instr();
  if (i.opcode == Opcode::kParameter && i.annotation == nullptr && open.empty()) {
    i.annotation = context.spelling(spelling);
    return x;
  }
  CustomCallAttrs attrs;
  attrs.target = "Sharding";
  Expr out = op(Opcode::kCustomCall, {x}, &attrs, x.shape());
  out.instr()->annotation = context.spelling(spelling);
  if (open.empty()) return out;
  Extras extras;
  extras.backend_config =
      context.name(fmt::format("\"unspecified_dims=[{}]\"", fmt::join(open, ",")));
  out.instr()->extras = context.attrs(extras);
  return out;
}

void check_mapping(Expr x, const NamedMesh& mesh, Ints mapping) {
  int64_t num_axes = static_cast<int64_t>(mesh.axes.size());
  if (!x.shape().is_array() || static_cast<int>(mapping.size()) != x.rank()) {
    throw Error(fmt::format("MeshSplit: {} mesh axes for {}", mapping.size(), to_string(x.shape())),
                "one for each dimension, -1 for none");
  }
  for (size_t d = 0; d < mapping.size(); ++d) {
    if (mapping[d] < -1 || mapping[d] >= num_axes) {
      throw Error(fmt::format("MeshSplit: axis {} of a mesh of {} for dimension {}", mapping[d],
                              num_axes, d),
                  "axes count from 0; -1 is none");
    }
    for (size_t e = 0; e < d; ++e) {
      if (mapping[d] < 0 || mapping[e] != mapping[d]) continue;
      throw Error(fmt::format("MeshSplit: axis {} splits dimensions {} and {}", mapping[d], e, d),
                  "each axis splits one dimension at most");
    }
  }
}

}  // namespace

Expr MeshSplit(Expr x, const NamedMesh& mesh, Ints mapping, Ints open) {
  check_mapping(x, mesh, mapping);
  ShardingSpelling named;
  named.kind = ShardingSpelling::Kind::kNamed;
  named.mesh = mesh;
  int64_t devices = 1;
  for (const auto& [name, size] : mesh.axes) devices *= size;
  for (int64_t axis : mapping) {
    NamedDim dim;
    if (axis >= 0) dim.axes.push_back({.name = mesh.axes[static_cast<size_t>(axis)].first});
    named.dims.push_back(std::move(dim));
  }
  normalize(&named);
  MeshRefinement refinement(&x.writer().context().shardings(), devices);
  refinement.note(named);
  refinement.finish();
  return annotate_as(x, spell(refinement.resolve(named, x.rank()).sharding), open);
}

Expr annotate(Expr x, std::string_view sharding) {
  size_t at = 0;
  try {
    ShardingSpelling spelling = parse_hlo_sharding(sharding, &at);
    if (at == sharding.size()) return annotate_as(x, spelling, {});
  } catch (const SpellingError& e) {
    throw Error(fmt::format("annotate: {} at byte {} of {}", e.message, e.offset, sharding),
                e.hint);
  }
  throw Error(fmt::format("annotate: text after the sharding in {}", sharding));
}

}  // namespace gspmd
