// convolution: a kernel slid over the spatial dimensions of an image. Groups split features
// (feature_groups) or pair parts of the batch with parts of the kernel's output features
// (batch_groups).

#include <fmt/format.h>

#include "gspmd/ops/dot_dims.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

constexpr std::string_view kName = "convolution";

int as_int(int64_t d) { return static_cast<int>(d); }

// Every dimension of a tensor must be named once by dim_labels.
void check_labels(absl::Span<const int64_t> spatial, int64_t first, int64_t second, Shape s,
                  std::string_view tensor) {
  DimVector all(spatial.begin(), spatial.end());
  all.push_back(first);
  all.push_back(second);
  if (static_cast<int>(all.size()) != s.rank()) {
    refuse(kName, fmt::format("dim_labels names {} dimensions of the {}, which is {}", all.size(),
                              tensor, to_string(s)));
  }
  check_dims(all, s.rank(), kName, fmt::format("dim_labels of the {}", tensor));
}

void check_groups(const ConvAttrs& a, Shape lhs, Shape rhs) {
  int64_t g = a.feature_groups, b = a.batch_groups;
  if (g < 1 || b < 1 || (g > 1 && b > 1)) {
    refuse(kName, fmt::format("feature_group_count {} and batch_group_count {}", g, b),
           "both are at least 1, and one of them is 1");
  }
  int64_t features = lhs.dim(as_int(a.dims.input_feature)),
          batch = lhs.dim(as_int(a.dims.input_batch));
  int64_t kernel_in = rhs.dim(as_int(a.dims.kernel_input)),
          out = rhs.dim(as_int(a.dims.kernel_output));
  if (features % g != 0 || features / g != kernel_in) {
    refuse(
        kName,
        fmt::format("{} input features, and {} of the kernel in {} groups", features, kernel_in, g),
        "input features must be the kernel's input features times feature_group_count");
  }
  if (out % (g * b) != 0 || batch % b != 0) {
    refuse(kName,
           fmt::format("{} output features and a batch of {} in {} groups", out, batch, g * b),
           "groups must divide them");
  }
}

Shape infer(const InferArgs& args) {
  const auto& a = args.attrs.get<ConvAttrs>();
  Shape lhs = array_operand(args, 0, kName), rhs = array_operand(args, 1, kName);
  check_labels(a.dims.input_spatial, a.dims.input_batch, a.dims.input_feature, lhs, "input");
  check_labels(a.dims.kernel_spatial, a.dims.kernel_input, a.dims.kernel_output, rhs, "kernel");
  int spatial = as_int(static_cast<int64_t>(a.dims.input_spatial.size()));
  check_window(a.window, spatial, kName);
  check_groups(a, lhs, rhs);
  DimVector out(static_cast<size_t>(spatial) + 2, -1);
  auto set = [&](int64_t d, int64_t size) {
    check_dim(d, spatial + 2, kName, "dim_labels of the output");
    if (out[d] >= 0)
      refuse(kName, fmt::format("dim_labels of the output names dimension {} twice", d));
    out[d] = size;
  };
  set(a.dims.output_batch, lhs.dim(as_int(a.dims.input_batch)) / a.batch_groups);
  set(a.dims.output_feature, rhs.dim(as_int(a.dims.kernel_output)));
  check_equal(spatial, static_cast<int64_t>(a.dims.kernel_spatial.size()), kName,
              "spatial dimensions");
  check_equal(spatial, static_cast<int64_t>(a.dims.output_spatial.size()), kName,
              "spatial dimensions");
  for (int k = 0; k < spatial; ++k) {
    check_equal(a.window[k].size, rhs.dim(as_int(a.dims.kernel_spatial[k])), kName,
                fmt::format("window and kernel, spatial dimension {}", k));
    set(a.dims.output_spatial[k],
        window_positions(lhs.dim(as_int(a.dims.input_spatial[k])), a.window[k]));
  }
  return args.context.array(product_type(args, lhs, rhs), out);
}

// Batch and features. With G groups: lhs features are G x C/G, kernel output and result features G
// x O/G (G major), and only C/G is summed. Depthwise is G = C. With B batch groups: the lhs batch
// is B x N/B, kernel output and result features B x O/B, and group b of the batch meets group b of
// the features.
void add_features(RuleBuilder* r, const Instr& conv) {
  const auto& a = conv.attrs<ConvAttrs>();
  const ConvDims& d = a.dims;
  Shape lhs = conv.operand(0)->shape, rhs = conv.operand(1)->shape;
  int64_t groups = a.feature_groups * a.batch_groups;
  auto add = [&](Factor f, int64_t size, int64_t lhs_dim, int64_t rhs_dim, int64_t result_dim) {
    if (size == 1 && groups > 1) return;
    f.size = size;
    FactorId id = r->add(f);
    if (lhs_dim != kNone) r->place(id, 0, lhs_dim);
    if (rhs_dim != kNone) r->place(id, 1, rhs_dim);
    if (result_dim != kNone) r->place(id, r->result(), result_dim);
  };
  const Factor parallel, sum{.kind = FactorKind::kReduce, .combiner = Combiner::kSum};
  int64_t grouped = a.batch_groups > 1 ? d.input_batch : d.input_feature;
  if (groups > 1) add(parallel, groups, grouped, d.kernel_output, d.output_feature);
  add(parallel, lhs.dim(as_int(d.input_batch)) / a.batch_groups, d.input_batch, kNone,
      d.output_batch);
  add(parallel, rhs.dim(as_int(d.kernel_output)) / groups, kNone, d.kernel_output,
      d.output_feature);
  add(sum, rhs.dim(as_int(d.kernel_input)), d.input_feature, d.kernel_input, kNone);
}

// The kernel meets the image at one place only and covers it exactly: a contraction, as in a
// gradient of the kernel.
bool covers_all(const WindowDim& w, int64_t size) {
  return w.size == size && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1 &&
         w.window_dilation == 1 && !w.reversal;
}

// More taps than positions: the gradient of a kernel, whose "kernel" is an image itself. Taps and
// image are split alike; each shard's taps read the image a little around its own block.
void add_taps(RuleBuilder* r, const WindowDim& w, int64_t in, int64_t kernel, int64_t out,
              int64_t positions) {
  FactorId taps = r->add({.kind = FactorKind::kReduce,
                          .combiner = Combiner::kSum,
                          .size = w.size,
                          .window = r->keep(w),
                          .needs_handler = true});
  r->place(taps, 0, in);
  r->place(taps, 1, kernel);
  r->place(r->add({.kind = FactorKind::kWhole, .propagates = false, .size = positions}),
           r->result(), out);
}

void add_spatial(RuleBuilder* r, const Instr& conv, int k) {
  const auto& a = conv.attrs<ConvAttrs>();
  const WindowDim& w = a.window[k];
  int64_t in = a.dims.input_spatial[k], kernel = a.dims.kernel_spatial[k],
          out = a.dims.output_spatial[k];
  if (is_trivial(w)) {
    r->parallel({in, kNone}, out);
    return;
  }
  int64_t size = conv.operand(0)->shape.dim(as_int(in));
  if (covers_all(w, size)) {
    if (size > 1) r->reduce({in, kernel}, Combiner::kSum);
    return;
  }
  int64_t positions = conv.shape.dim(as_int(out));
  if (positions < w.size && !w.reversal) return add_taps(r, w, in, kernel, out, positions);
  r->window({in, kNone}, out, w);
  if (w.size == 1) return;
  FactorId taps = r->add({.kind = FactorKind::kReduce,
                          .combiner = Combiner::kSum,
                          .size = w.size,
                          .needs_handler = true});  // each tap reads the image elsewhere
  r->place(taps, 1, kernel);
}

const Rule* rule(const Instr& conv, Arena& arena) {
  RuleBuilder r(conv, arena);
  add_features(&r, conv);
  int spatial = as_int(static_cast<int64_t>(conv.attrs<ConvAttrs>().window.size()));
  for (int k = 0; k < spatial; ++k) add_spatial(&r, conv, k);
  return r.build();
}

constexpr Field kFields[] = {
    field<&ConvAttrs::window>("window", FieldKind::kWindow),
    required(field<&ConvAttrs::dims>("dim_labels", FieldKind::kConvDims)),
    field<&ConvAttrs::feature_groups>("feature_group_count", FieldKind::kInt),
    field<&ConvAttrs::batch_groups>("batch_group_count", FieldKind::kInt),
    field<&ConvAttrs::operand_precision>("operand_precision", FieldKind::kRaw),
    field<&ConvAttrs::algorithm>("algorithm", FieldKind::kRaw),
};

}  // namespace

extern const OpDef kConvolutionDef = {
    .opcode = Opcode::kConvolution,
    .name = kName,
    .min_operands = 2,
    .max_operands = 2,
    .attrs = AttrsKind::kConvAttrs,
    .fields = kFields,
    .traits = {.shape_inferable = true, .sums = PartialSums::kPassInOne},
    .infer = infer,
    .rule = rule,
    .flops_per_point = 2,
};

}  // namespace gspmd
