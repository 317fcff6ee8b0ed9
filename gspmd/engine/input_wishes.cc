#include "gspmd/engine/input_wishes.h"

#include <algorithm>

#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

Wish below(int64_t bound) { return {std::max<int64_t>(bound, 1), false}; }

// Operators whose result has the sign and about the size of what goes in.
bool passes(const Instr& i) {
  switch (i.opcode) {
    case Opcode::kAdd:
    case Opcode::kSelect:
    case Opcode::kClamp:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kMultiply:
    case Opcode::kDivide:
    case Opcode::kConvert:
    case Opcode::kReduce:
    case Opcode::kCustomCall:
      return true;
    default:
      return def(i).traits.data_movement;
  }
}

}  // namespace

InputWishes::InputWishes(const Module& m) {
  for (int round = 0; round < 2; ++round) {  // what loops carry goes around once
    for (const auto& c : m.computations()) {
      for (auto i = c->instrs().rbegin(); i != c->instrs().rend(); ++i) visit(**i);
    }
  }
}

Wish InputWishes::of(const Instr& i, int element) const {
  auto it = wishes_.find({&i, element});
  return it == wishes_.end() ? Wish() : it->second;
}

void InputWishes::wish(const Instr& i, const Wish& w, int element) {
  if (w.any()) wishes_[{&i, element}].merge(w);
}

void InputWishes::wish_elements(const Instr& from, const Instr& to) {
  wish(to, of(from));
  int n = from.shape.is_tuple() ? static_cast<int>(from.shape.elements().size()) : 0;
  for (int k = 0; k < n; ++k) wish(to, of(from, k), k);
}

void InputWishes::visit(const Instr& i) {
  Wish w = of(i);
  visit_indexing(i);
  visit_structure(i, w);
  switch (i.opcode) {
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
    case Opcode::kLog:
      return wish(*i.operand(0), {Wish::kNone, true});
    default:
      break;
  }
  if (!w.any() || !passes(i)) return;
  for (const Instr* o : i.operands) {
    if (o->shape.is_array() && class_of(o->shape.type()) == class_of(i.shape.type())) wish(*o, w);
  }
}

void InputWishes::visit_indexing(const Instr& i) {
  const Shape* first = i.num_operands() > 0 ? &i.operand(0)->shape : nullptr;
  if (i.opcode == Opcode::kGather) {
    const auto& a = i.attrs<GatherAttrs>();
    for (int64_t d : a.start_index_map) {
      wish(*i.operand(1), below(first->dim(static_cast<int>(d)) - a.slice_sizes[d] + 1));
    }
  } else if (i.opcode == Opcode::kScatter) {
    for (int64_t d : i.attrs<ScatterAttrs>().scatter_dims_to_operand_dims) {
      wish(*i.operand(i.num_operands() / 2), below(first->dim(static_cast<int>(d))));
    }
  } else if (i.opcode == Opcode::kDynamicSlice || i.opcode == Opcode::kDynamicUpdateSlice) {
    int at = i.opcode == Opcode::kDynamicSlice ? 1 : 2;
    Shape window = at == 1 ? i.shape : i.operand(1)->shape;
    for (int d = 0; d < first->rank() && at + d < i.num_operands(); ++d) {
      wish(*i.operand(at + d), below(first->dim(d) - window.dim(d) + 1));
    }
  }
}

void InputWishes::visit_structure(const Instr& i, const Wish& w) {
  switch (i.opcode) {
    case Opcode::kGetTupleElement:
      return wish(*i.operand(0), w, static_cast<int>(i.attrs<IndexAttrs>().index));
    case Opcode::kTuple:
      for (int k = 0; k < i.num_operands(); ++k) wish(*i.operand(k), of(i, k));
      return;
    case Opcode::kWhile:
      wish_elements(*i.called[1]->params()[0], *i.called[1]->root());
      wish_elements(*i.called[1]->params()[0], *i.operand(0));
      wish_elements(i, *i.operand(0));
      return;
    case Opcode::kCall:
    case Opcode::kFusion:
      wish_elements(i, *i.called[0]->root());
      for (int k = 0; k < i.num_operands(); ++k) {
        wish_elements(*i.called[0]->params()[k], *i.operand(k));
      }
      return;
    case Opcode::kConditional:
      for (size_t k = 0; k < i.called.size(); ++k) {
        wish_elements(*i.called[k]->params()[0], *i.operand(static_cast<int>(k) + 1));
      }
      return;
    default:
      return;
  }
}

}  // namespace gspmd
