// Random operands and attributes for every operator: each is either refused with an Error or has a
// rule that fits its tensors. Nothing crashes, and no check of our own fails.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sstream>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/own_attrs.h"
#include "tests/unit/ops/op_bench.h"

namespace gspmd {
namespace {

class RandomInstrs {
 public:
  explicit RandomInstrs(uint32_t seed) : random_(seed) {
    main_ = b_.module().add_computation("random");
    Opcode reducers[] = {Opcode::kAdd, Opcode::kMaximum, Opcode::kCompare};
    for (Opcode op : reducers) computations_.push_back(b_.reducer(op));
    computations_.push_back(b_.reducer(Opcode::kAdd, "s32[]"));
    computations_.push_back(b_.opaque({"f32[4,2]"}, "f32[4,2]"));
    computations_.push_back(b_.opaque({"f32[4,2]"}, "pred[]"));
    computations_.push_back(b_.opaque({"f32[]", "f32[]", "s32[]", "s32[]"}, "pred[]"));
    computations_.push_back(b_.opaque({"f32[]", "f32[]", "f32[]", "f32[]"}, "(f32[], f32[])"));
  }

  // One instruction; true where it was accepted.
  bool one(Opcode opcode) {
    const OpDef& op = def(opcode);
    std::vector<Shape> shapes;
    for (int n = operand_count(op); n > 0; --n) {
      Shape s = n % 2 == 1 || shapes.empty() || chance(3) ? shape() : shapes[below(shapes.size())];
      shapes.push_back(s);
    }
    Attrs attrs = random_attrs(op);
    std::vector<Computation*> called;
    size_t wanted = op.called.size() + (op.called_list.empty() ? 0 : below(3));
    for (size_t k = chance(20) ? 0 : wanted; k > 0; --k) {
      called.push_back(computations_[below(computations_.size())]);
    }
    Shape stated = shapes.empty() || chance(3) ? shape() : shapes[below(shapes.size())];
    return accepts(opcode, shapes, attrs, called, stated);
  }

  // A right instruction of the same context with up to two things changed.
  bool mutated(const Instr& i) {
    std::vector<Shape> shapes;
    for (const Instr* o : i.operands) shapes.push_back(o->shape);
    std::vector<Computation*> called(i.called.begin(), i.called.end());
    Attrs attrs = own_attrs(def(i), i.attributes, b_.context());
    Shape stated = i.shape;
    for (uint64_t n = below(3); n > 0; --n) {
      switch (below(5)) {
        case 0:
          if (!shapes.empty()) change(&shapes[below(shapes.size())]);
          break;
        case 1:
          change(&stated);
          break;
        case 2:
          if (!called.empty())
            called[below(called.size())] = computations_[below(computations_.size())];
          break;
        case 3:
          if (chance(4)) shapes.push_back(shape());
          break;
        default:
          if (!def(i).fields.empty()) attrs = changed(def(i), attrs);
      }
    }
    return accepts(i.opcode, shapes, attrs, called, stated);
  }

  std::shared_ptr<Context> context() { return b_.module().shared_context(); }

 private:
  bool accepts(Opcode opcode, absl::Span<const Shape> shapes, Attrs attrs,
               absl::Span<Computation* const> called, Shape stated) {
    std::vector<Instr*> operands;
    for (Shape s : shapes) {
      operands.push_back(
          b_.module().add(main_, Opcode::kParameter, s, {}, b_.context().attrs(ParameterAttrs{0})));
    }
    try {
      Shape result = infer_shape(opcode, {b_.context(), shapes, attrs, called, stated});
      if (chance(8)) result = stated;
      Instr* i = b_.module().add(main_, opcode, result, operands, attrs);
      i->called = b_.module().computation_array(called);
      verify(b_.module(), *i);
      const OpDef& op = def(opcode);
      if (op.rule != nullptr) check_rule(*i, *op.rule(*i, b_.context().arena()));
      return true;
    } catch (const Error& e) {
      EXPECT_FALSE(e.message().empty());
      return false;
    }
  }

  // Another size, type or rank.
  void change(Shape* s) {
    if (!s->is_array() || chance(10)) {
      *s = shape();
      return;
    }
    DimVector dims(s->dims().begin(), s->dims().end());
    ElementType type = s->type();
    if (dims.empty() || chance(4)) {
      type = array().type();
    } else if (chance(4)) {
      dims.erase(dims.begin() + static_cast<int64_t>(below(dims.size())));
    } else if (chance(4)) {
      dims.insert(dims.begin() + static_cast<int64_t>(below(dims.size())), 2);
    } else {
      dims[below(dims.size())] = static_cast<int64_t>(below(9));
    }
    *s = b_.context().array(type, dims);
  }

  Attrs changed(const OpDef& op, Attrs attrs) {
    Attrs copy = own_attrs(op, attrs, b_.context());
    const Field& f = op.fields[below(op.fields.size())];
    void* member = f.member(const_cast<void*>(copy.data()));
    if (f.kind != FieldKind::kDims || chance(3)) {
      set(f, member);
      return copy;
    }
    Dims dims = *static_cast<Dims*>(member);
    DimVector list(dims.begin(), dims.end());
    if (list.empty() || chance(3)) {
      list.push_back(number());
    } else if (chance(3)) {
      list.pop_back();
    } else {
      list[below(list.size())] = number();
    }
    *static_cast<Dims*>(member) = b_.context().dims(list);
    return copy;
  }

  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(int one_in) { return below(static_cast<uint64_t>(one_in)) == 0; }

  int operand_count(const OpDef& op) {
    int most = op.max_operands < 0 ? op.min_operands + 4 : op.max_operands;
    int n = op.min_operands +
            static_cast<int>(below(static_cast<uint64_t>(most - op.min_operands + 1)));
    return chance(50) ? static_cast<int>(below(4)) : n;
  }

  Shape shape() {
    if (chance(20)) return b_.context().token();
    if (chance(12)) {
      Shape elements[] = {array(), array(), array()};
      return b_.context().tuple(absl::MakeConstSpan(elements, below(4)));
    }
    return array();
  }

  Shape array() {
    using enum ElementType;
    constexpr ElementType kTypes[] = {kF32, kF32, kF32, kF32, kS32, kS32, kPred, kU64, kBF16, kC64};
    constexpr int64_t kSizes[] = {4, 4, 4, 4, 2, 2, 2, 1, 3, 6, 8, 0};
    DimVector dims(below(4) + (chance(8) ? 2 : 0));
    for (int64_t& d : dims) d = kSizes[below(std::size(kSizes))];
    uint64_t dynamic = dims.empty() || !chance(30) ? 0 : uint64_t{1} << below(dims.size());
    return b_.context().array(kTypes[below(std::size(kTypes))], dims, nullptr, dynamic);
  }

  int64_t number() {
    if (chance(100)) return std::numeric_limits<int64_t>::max();
    if (chance(100)) return std::numeric_limits<int64_t>::min();
    constexpr int64_t kNumbers[] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 4, 4, -1, 6};
    return kNumbers[below(std::size(kNumbers))];
  }

  Dims numbers() {
    DimVector list(below(4));
    bool ordered = chance(2);  // as most lists of dimensions are
    for (size_t k = 0; k < list.size(); ++k) list[k] = ordered ? static_cast<int64_t>(k) : number();
    return b_.context().dims(list);
  }

  Window window() {
    std::vector<WindowDim> dims(below(4));
    for (WindowDim& w : dims) {
      if (chance(2)) w.size = number();
      if (chance(3)) w.stride = number();
      if (chance(3)) w.pad_low = number();
      if (chance(3)) w.pad_high = number();
      if (chance(5)) w.base_dilation = number();
      if (chance(5)) w.window_dilation = number();
    }
    return b_.context().arena().copy(absl::Span<const WindowDim>(dims));
  }

  ConvDims conv_dims() {
    ConvDims d;
    if (chance(3)) {
      for (int64_t* n : {&d.input_batch, &d.input_feature, &d.kernel_input, &d.kernel_output,
                         &d.output_batch, &d.output_feature}) {
        *n = number();
      }
      d.input_spatial = numbers();
      d.kernel_spatial = numbers();
      d.output_spatial = numbers();
      return d;
    }
    DimVector spatial;
    for (int64_t k = static_cast<int64_t>(below(3)); k > 0; --k) spatial.push_back(1 + k);
    d.input_feature = d.kernel_output = d.output_feature = 1;
    d.input_spatial = d.kernel_spatial = d.output_spatial = b_.context().dims(spatial);
    return d;
  }

  void set(const Field& f, void* member) {
    switch (f.kind) {
      case FieldKind::kInt:
        *static_cast<int64_t*>(member) = number();
        break;
      case FieldKind::kBool:
        *static_cast<bool*>(member) = chance(2);
        break;
      case FieldKind::kDouble:
        *static_cast<double*>(member) = 0.5;
        break;
      case FieldKind::kDims:
        *static_cast<Dims*>(member) = numbers();
        break;
      case FieldKind::kSlices: {
        Dims starts = numbers();
        DimVector limits(starts.size(), 4), strides(starts.size(), 1);
        for (int64_t& x : limits) x = chance(3) ? number() : x;
        for (int64_t& x : strides) x = chance(4) ? number() : x;
        *static_cast<SliceAttrs*>(member) = {starts, b_.context().dims(limits),
                                             b_.context().dims(strides)};
        break;
      }
      case FieldKind::kPadding: {
        DimVector low(below(4)), high(low.size()), interior(low.size());
        for (auto* list : {&low, &high, &interior}) {
          for (int64_t& x : *list) x = number();
        }
        *static_cast<PadAttrs*>(member) = {b_.context().dims(low), b_.context().dims(high),
                                           b_.context().dims(interior)};
        break;
      }
      case FieldKind::kWindow:
        *static_cast<Window*>(member) = window();
        break;
      case FieldKind::kConvDims:
        *static_cast<ConvDims*>(member) = conv_dims();
        break;
      case FieldKind::kEnum:
        *static_cast<uint8_t*>(member) = static_cast<uint8_t>(below(f.names.size()));
        break;
      case FieldKind::kDeviceGroups:
        if (chance(2)) *static_cast<const DeviceGroups**>(member) = b_.groups(2, chance(2) ? 2 : 4);
        break;
      case FieldKind::kConvDimsPointer:
      case FieldKind::kRaw:
      case FieldKind::kString:
      case FieldKind::kPairs:
      case FieldKind::kShape:
        break;
    }
  }

  Attrs random_attrs(const OpDef& op) {
    void* attrs = make_attrs(op.attrs, b_.context().arena());
    for (const Field& f : op.fields) {
      if (!chance(6)) set(f, f.member(attrs));
    }
    return {op.attrs, attrs};
  }

  // Every dimension with parallel or reduced factors is their product; each factor stands once in a
  // tensor.
  void check_rule(const Instr& i, const Rule& r) {
    std::vector<Shape> tensors;
    for (const Instr* o : i.operands) tensors.push_back(o->shape);
    for_each_leaf(i.shape, [&](Shape leaf, int) { tensors.push_back(leaf); });
    std::string about = describe(i) + ": " + r.to_string() + " of";
    bool dynamic = false;  // bounds of dimensions that are one may differ
    for (Shape s : tensors) {
      about += " " + to_string(s);
      dynamic = dynamic || s.is_dynamic();
    }
    ASSERT_EQ(r.num_tensors(), static_cast<int>(tensors.size())) << about;
    for (int t = 0; t < r.num_tensors(); ++t) {
      ASSERT_EQ(r.rank(t), tensors[t].is_array() ? tensors[t].rank() : 0) << about;
      std::set<FactorId> seen;
      for (int d = 0; d < r.rank(t); ++d) {
        int64_t product = 1;
        bool exact = !r.dim(t, d).empty() && !dynamic;
        for (FactorId f : r.dim(t, d)) {
          EXPECT_TRUE(seen.insert(f).second) << about;
          product *= r.factor(f).size;
          exact = exact && !r.factor(f).needs_handler && r.factor(f).kind != FactorKind::kWindow &&
                  r.factor(f).kind != FactorKind::kIndexed;
        }
        if (!exact) continue;
        EXPECT_EQ(product, tensors[t].dim(d)) << about << ", tensor " << t << ", dimension " << d;
      }
    }
  }

  std::mt19937 random_;
  OpBench b_;
  Computation* main_;
  std::vector<Computation*> computations_;
};

void each_is_refused_or_fits(const std::function<void()>& one) {
  try {
    one();
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

TEST(RandomInstrs, AreRefusedOrHaveAFittingRule) {
  for (int k = 0; k < kNumOpcodes && !testing::Test::HasFailure(); ++k) {
    Opcode op = static_cast<Opcode>(k);
    if (op == Opcode::kConstant || op == Opcode::kParameter) continue;  // no random literals
    RandomInstrs instrs(static_cast<uint32_t>(k));
    for (int n = 0; n < 2000 && !testing::Test::HasFailure(); ++n) {
      each_is_refused_or_fits([&] { instrs.one(op); });
    }
  }
}

TEST(RandomInstrs, ChangedRightOnesToo) {
  std::set<Opcode> accepted;
  for (const char* name :
       {"contractions", "reductions_and_communication", "elementwise_and_movement",
        "indexing_and_control", "scan_and_scaled_dot"}) {
    RandomInstrs instrs(7);
    std::ifstream file(fmt::format("tests/golden/ops/{}.hlo", name));
    ASSERT_TRUE(file) << "run the tests from the root of the sources";
    std::stringstream text;
    text << file.rdbuf();
    auto m = parse_hlo(instrs.context(), text.str(), name);
    for (const Instr* i : m->entry()->instrs()) {
      if (i->opcode == Opcode::kConstant || i->opcode == Opcode::kParameter) continue;
      for (int n = 0; n < 1000 && !testing::Test::HasFailure(); ++n) {
        each_is_refused_or_fits([&] {
          if (instrs.mutated(*i)) accepted.insert(i->opcode);
        });
      }
    }
  }
  std::string never;
  for (int k = 0; k < kNumOpcodes; ++k) {
    Opcode op = static_cast<Opcode>(k);
    bool possible = op != Opcode::kConstant && op != Opcode::kParameter;
    if (possible && !accepted.contains(op)) never += fmt::format("{} ", name_of(op));
  }
  EXPECT_EQ(never, "");
}

}  // namespace
}  // namespace gspmd
