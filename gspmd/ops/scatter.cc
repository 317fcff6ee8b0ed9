// scatter: updates combined into the operand at run-time places; n operands, indices, n updates.

#include <fmt/format.h>

#include <vector>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "scatter";

// Scatter dimensions of the updates are those of the indices; windows fit into the operand.
void check_updates(const ScatterAttrs& a, Shape x, Shape indices, Shape updates) {
  int64_t u = 0;
  for (int d = 0; d < indices.rank(); ++d) {
    if (d == a.index_vector_dim) continue;
    while (a.update_window_dims.contains(u)) ++u;
    check_equal(indices.dim(d), updates.dim(static_cast<int>(u)), kName,
                fmt::format("dimension {} of the indices and {} of the updates", d, u));
    ++u;
  }
  size_t window = 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (a.inserted_window_dims.contains(d) || a.input_batching_dims.contains(d)) continue;
    int64_t w = a.update_window_dims[window++];
    if (updates.dim(static_cast<int>(w)) <= x.dim(d)) continue;
    refuse(kName,
           fmt::format("update dimension {} has {} elements, dimension {} of the operand {}", w,
                       updates.dim(static_cast<int>(w)), d, x.dim(d)),
           "windows must fit");
  }
}

// Current values, then updates, one of each array; gives the new values.
void check_function(const InferArgs& args, size_t n) {
  if (args.called.empty()) return;
  const Computation& f = *args.called[0];
  if (f.params().size() != 2 * n) {
    refuse(kName,
           fmt::format("{} has {} parameters, {} arrays need {}", f.name(), f.params().size(), n,
                       2 * n),
           "the current value and the update of each");
  }
  int results = f.root()->shape.num_leaves();
  if (results == static_cast<int>(n)) return;
  refuse(kName, fmt::format("{} gives {} values for {} arrays", f.name(), results, n));
}

Shape infer(const InferArgs& args) {
  size_t n = args.operands.size() / 2;
  if (args.operands.size() != 2 * n + 1) {
    refuse(kName, fmt::format("{} operands", args.operands.size()), "n arrays, indices, n updates");
  }
  check_function(args, n);
  const auto& a = args.attrs.get<ScatterAttrs>();
  Shape x = array_operand(args, 0, kName),
        indices = array_operand(args, static_cast<int>(n), kName);
  if (!is_integer(indices.type()))
    refuse(kName, fmt::format("indices of type {}", name_of(indices.type())),
           "integers are needed");
  check_same_sizes(args, 0, static_cast<int>(n), kName);
  check_same_sizes(args, static_cast<int>(n) + 1, static_cast<int>(2 * n + 1), kName);
  if (a.index_vector_dim < 0 || a.index_vector_dim > indices.rank()) {
    refuse(kName, fmt::format("index_vector_dim {} of {}", a.index_vector_dim, to_string(indices)),
           "at most the rank");
  }
  check_sorted(a.update_window_dims, kName, "update_window_dims");
  check_sorted(a.inserted_window_dims, kName, "inserted_window_dims");
  check_dims(a.scatter_dims_to_operand_dims, x.rank(), kName, "scatter_dims_to_operand_dims");
  check_apart(a.inserted_window_dims, a.input_batching_dims, x.rank(), kName,
              "inserted_window_dims and input_batching_dims");
  int64_t numbers =
      a.index_vector_dim == indices.rank() ? 1 : indices.dim(static_cast<int>(a.index_vector_dim));
  check_equal(numbers, static_cast<int64_t>(a.scatter_dims_to_operand_dims.size()), kName,
              "the index vectors' length and scatter_dims_to_operand_dims'");
  Shape updates = args.operands[n + 1];
  int64_t window = static_cast<int64_t>(a.update_window_dims.size());
  int64_t batch = indices.rank() - (a.index_vector_dim < indices.rank() ? 1 : 0);
  check_equal(updates.rank(), window + batch, kName,
              "the updates' rank and window plus scatter dimensions");
  check_equal(
      x.rank(),
      window + static_cast<int64_t>(a.inserted_window_dims.size() + a.input_batching_dims.size()),
      kName, "the operand's rank and window plus inserted plus batching dimensions");
  check_dims(a.update_window_dims, updates.rank(), kName, "update_window_dims");
  check_batching(x, a.input_batching_dims, indices, a.scatter_indices_batching_dims,
                 a.index_vector_dim, kName);
  check_updates(a, x, indices, updates);
  for (size_t k = 0; k < n; ++k) {
    Shape u = args.operands[n + 1 + k];
    if (class_of(u.type()) == class_of(args.operands[k].type())) continue;
    refuse(kName, fmt::format("updates {} for {}", to_string(u), to_string(args.operands[k])),
           "convert one of them");
  }
  std::vector<Shape> results;
  for (size_t k = 0; k < n; ++k) results.push_back(args.operands[k].plain());
  return one_or_tuple(args.context, results);
}

// Window dimensions that are whole pass. Split scatter dimensions (of indices and updates) give
// partial results. A split operand dimension that is indexed one element at a time takes the
// updates that fall into it.
class Builder {
 public:
  Builder(const Instr& instr, Arena& arena)
      : r_(instr, arena),
        a_(instr.attrs<ScatterAttrs>()),
        n_(instr.num_operands() / 2),
        x_(instr.operand(0)->shape),
        indices_(instr.operand(n_)->shape),
        updates_(instr.operand(n_ + 1)->shape) {
    combiner_ = n_ == 1 ? combiner_of(*instr.called[0]) : Combiner::kNone;
  }

  const Rule* rule() {
    size_t window = 0;
    for (int d = 0; d < x_.rank(); ++d) {
      if (a_.input_batching_dims.contains(d)) continue;
      if (a_.inserted_window_dims.contains(d)) {
        // Without an index all updates go to the first element.
        bool indexed = a_.scatter_dims_to_operand_dims.contains(d);
        on_operands(indexed ? FactorKind::kIndexed : FactorKind::kWhole, d, kNone);
        continue;
      }
      int64_t u = a_.update_window_dims[window++];
      bool whole = updates_.dim(static_cast<int>(u)) == x_.dim(d);
      on_operands(whole ? FactorKind::kParallel : FactorKind::kIndexed, d, whole ? u : kNone);
    }
    int64_t u = 0;
    for (int d = 0; d < indices_.rank(); ++d) {
      if (d == a_.index_vector_dim) continue;
      while (a_.update_window_dims.contains(u)) ++u;
      scatter_dim(d, u++);
    }
    return r_.build();
  }

 private:
  void on_operands(FactorKind kind, int64_t d, int64_t update_dim) {
    Factor f;
    f.kind = kind;
    f.size = x_.dim(static_cast<int>(d));
    FactorId id = r_.add(f);
    for (int k = 0; k < n_; ++k) {
      r_.place(id, k, d);
      r_.place(id, r_.result(k), d);
      if (update_dim != kNone) r_.place(id, n_ + 1 + k, update_dim);
    }
  }

  void scatter_dim(int64_t index_dim, int64_t update_dim) {
    int64_t k = a_.scatter_indices_batching_dims.index_of(index_dim);
    Factor f;
    f.size = indices_.dim(static_cast<int>(index_dim));
    if (k < 0) {
      f.kind = FactorKind::kReduce;
      f.combiner = combiner_;
      f.needs_handler = true;  // the operands enter once
    }
    FactorId id = r_.add(f);
    r_.place(id, n_, index_dim);
    for (int i = 0; i < n_; ++i) {
      r_.place(id, n_ + 1 + i, update_dim);
      if (k >= 0) r_.place(id, i, a_.input_batching_dims[k]);
      if (k >= 0) r_.place(id, r_.result(i), a_.input_batching_dims[k]);
    }
  }

  RuleBuilder r_;
  const ScatterAttrs& a_;
  int n_;
  Shape x_, indices_, updates_;
  Combiner combiner_;
};

const Rule* rule(const Instr& instr, Arena& arena) { return Builder(instr, arena).rule(); }

constexpr Field kFields[] = {
    required(field<&ScatterAttrs::update_window_dims>("update_window_dims", FieldKind::kDims)),
    required(field<&ScatterAttrs::inserted_window_dims>("inserted_window_dims", FieldKind::kDims)),
    required(field<&ScatterAttrs::scatter_dims_to_operand_dims>("scatter_dims_to_operand_dims",
                                                                FieldKind::kDims)),
    field<&ScatterAttrs::input_batching_dims>("input_batching_dims", FieldKind::kDims),
    field<&ScatterAttrs::scatter_indices_batching_dims>("scatter_indices_batching_dims",
                                                        FieldKind::kDims),
    required(field<&ScatterAttrs::index_vector_dim>("index_vector_dim", FieldKind::kInt)),
    field<&ScatterAttrs::indices_are_sorted>("indices_are_sorted", FieldKind::kBool),
    field<&ScatterAttrs::unique_indices>("unique_indices", FieldKind::kBool),
};
constexpr std::string_view kCalled[] = {"to_apply"};

}  // namespace

extern const OpDef kScatterDef = {.opcode = Opcode::kScatter,
                                  .name = kName,
                                  .min_operands = 3,
                                  .max_operands = -1,
                                  .attrs = AttrsKind::kScatterAttrs,
                                  .fields = kFields,
                                  .called = kCalled,
                                  .traits = {.shape_inferable = true},
                                  .infer = infer,
                                  .rule = rule,
                                  .flops_per_point = 1};

}  // namespace gspmd
