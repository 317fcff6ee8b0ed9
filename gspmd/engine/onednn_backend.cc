// Dots and convolutions by oneDNN.

#include <absl/container/flat_hash_map.h>
#include <omp.h>

#include <mutex>
#include <optional>
#include <tuple>

#include "dnnl.hpp"
#include "gspmd/engine/kernels/channels_last.h"
#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/kernels/matrices.h"

namespace gspmd {
namespace {

using dnnl::memory;

// Devices are tasks on threads of their own: oneDNN must not start more. What it would do on this
// thread otherwise comes back at the end.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

memory::data_type data_type(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return memory::data_type::f32;
    case ElementType::kBF16:
      return memory::data_type::bf16;
    case ElementType::kS8:
      return memory::data_type::s8;
    case ElementType::kS32:
      return memory::data_type::s32;
    default:
      return memory::data_type::undef;
  }
}

// The types that oneDNN computes a product in; nullopt where it has none or is not exact.
struct Types {
  ElementType operands, result;
};
std::optional<Types> types_for(ElementType lhs, ElementType rhs, ElementType result) {
  constexpr ElementType kF32 = ElementType::kF32, kBF16 = ElementType::kBF16;
  const auto narrow_float = [](ElementType t) { return is_float(t) && t != ElementType::kF64; };
  if (lhs == ElementType::kS8 && rhs == ElementType::kS8 && result == ElementType::kS32) {
    // Older instructions saturate 16-bit sums of pairs.
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    const bool exact = isa == dnnl::cpu_isa::avx512_core_vnni ||
                       isa == dnnl::cpu_isa::avx512_core_bf16 ||
                       isa == dnnl::cpu_isa::avx512_core_amx;
    return exact ? std::optional<Types>({ElementType::kS8, ElementType::kS32}) : std::nullopt;
  }
  if (!narrow_float(lhs) || !narrow_float(rhs) || !narrow_float(result)) return std::nullopt;
  const bool bf16 = lhs == kBF16 && rhs == kBF16;
  return Types{bf16 ? kBF16 : kF32, bf16 && result == kBF16 ? kBF16 : kF32};
}

// What a primitive depends on.
using Key = absl::InlinedVector<int64_t, 32>;

void append(Key* key, absl::Span<const int64_t> values) {
  key->push_back(static_cast<int64_t>(values.size()));
  key->insert(key->end(), values.begin(), values.end());
}

memory::desc descriptor(const memory::dims& dims, ElementType type, const memory::dims& strides) {
  return memory::desc(dims, data_type(type), strides);
}

// A primitive and the memory it needs beside its operands.
struct Compiled {
  dnnl::primitive primitive;
  memory::desc scratchpad, weights;
};

class OnednnBackend final : public Backend {
 public:
  bool dot(const Instr& instr, const Buffer& lhs, const Buffer& rhs, Buffer* result) override {
    const std::optional<Types> types = types_for(lhs.type(), rhs.type(), result->type());
    if (!types) return false;
    const Matrices x = matrices_of(instr.attrs<DotAttrs>(), lhs, rhs);
    constexpr double kWorthwhile = 32 * 32 * 32;
    const double work = static_cast<double>(x.batch) * static_cast<double>(x.m) *
                        static_cast<double>(x.n) * static_cast<double>(x.k);
    if (work < kWorthwhile) return false;
    const OneThread one;
    const Compiled* compiled = matmul(x, *types);
    if (compiled == nullptr) return false;
    Buffer a = converted(x.lhs, types->operands), b = converted(x.rhs, types->operands);
    Buffer out(types->result, result->dims());
    execute(*compiled, {{DNNL_ARG_SRC, &a}, {DNNL_ARG_WEIGHTS, &b}, {DNNL_ARG_DST, &out}},
            matmul_descriptors(x, *types));
    *result = converted(out, result->type());
    return true;
  }

  bool convolution(const Instr& instr, const Buffer& lhs, const Buffer& rhs,
                   Buffer* result) override {
    const auto& a = instr.attrs<ConvAttrs>();
    const std::optional<Types> types = types_for(lhs.type(), rhs.type(), result->type());
    const size_t spatial = a.window.size();
    if (!types || a.batch_groups > 1 || spatial < 1 || spatial > 3 || result->size() == 0 ||
        lhs.size() == 0 || rhs.size() == 0) {
      return false;
    }
    const OneThread one;
    ChannelsLast arrays = channels_last(instr, lhs, rhs);
    const Shapes shapes(a, &arrays);
    const Compiled* compiled = convolution_of(shapes, *types);
    if (compiled == nullptr) return false;
    Buffer x = converted(arrays.input, types->operands);
    Buffer kernel = converted(arrays.kernel, types->operands);
    Buffer out(types->result, arrays.result_dims);
    const memory::desc weights = shapes.weights(types->operands);
    Buffer reordered;
    if (compiled->weights != weights) {
      reordered = Buffer(ElementType::kU8, {static_cast<int64_t>(compiled->weights.get_size())});
      memory from(weights, engine_, kernel.mutable_raw());
      memory to(compiled->weights, engine_, reordered.mutable_raw());
      dnnl::stream stream(engine_);
      dnnl::reorder(from, to).execute(stream, from, to);
      stream.wait();
      kernel = reordered;
    }
    execute(*compiled, {{DNNL_ARG_SRC, &x}, {DNNL_ARG_WEIGHTS, &kernel}, {DNNL_ARG_DST, &out}},
            {shapes.source(types->operands), compiled->weights, shapes.target(types->result)});
    *result = permuted(converted(out, result->type()), arrays.back);
    return true;
  }

 private:
  using Arguments = std::vector<std::pair<int, Buffer*>>;

  // A convolution as oneDNN has it: channels second in the list of sizes, last in memory.
  struct Shapes {
    memory::dims input, kernel, result, stride, low, high, dilation;
    int64_t groups;

    // Holes in the input, and edges that are cut, are made first.
    Shapes(const ConvAttrs& a, ChannelsLast* arrays) : groups(a.feature_groups) {
      const bool plain = std::all_of(a.window.begin(), a.window.end(), [](const WindowDim& w) {
        return w.base_dilation == 1 && w.pad_low >= 0 && w.pad_high >= 0;
      });
      if (!plain) arrays->input = with_padding(a.window, arrays->input);
      for (const WindowDim& w : a.window) {
        stride.push_back(w.stride);
        dilation.push_back(w.window_dilation - 1);
        low.push_back(plain ? w.pad_low : 0);
        high.push_back(plain ? w.pad_high : 0);
      }
      const DimVector &x = arrays->input.dims(), &k = arrays->kernel.dims(),
                      &r = arrays->result_dims;
      const size_t spatial = a.window.size();
      input = {x.front(), x.back()};
      result = {r.front(), r.back()};
      kernel = {groups, k[spatial + 1] / groups, k[spatial]};
      for (size_t d = 0; d < spatial; ++d) {
        input.push_back(x[d + 1]);
        result.push_back(r[d + 1]);
        kernel.push_back(k[d]);
      }
      // oneDNN wants the far edge to be what the result's size needs.
      for (size_t d = 0; d < spatial; ++d) {
        const int64_t window = (k[d] - 1) * (dilation[d] + 1) + 1;
        high[d] = (r[d + 1] - 1) * stride[d] + window - x[d + 1] - low[d];
      }
    }

    static Buffer with_padding(Window window, const Buffer& x) {
      DimVector low(1, 0), high(1, 0), interior(1, 0);
      for (const WindowDim& w : window) {
        low.push_back(w.pad_low);
        high.push_back(w.pad_high);
        interior.push_back(w.base_dilation - 1);
      }
      for (DimVector* v : {&low, &high, &interior}) v->push_back(0);
      return padded(x, Buffer::zeros(x.type(), {}), {low, high, interior});
    }

    static memory::dims strides(const memory::dims& sizes) {  // channels last
      memory::dims s(sizes.size(), 1);
      int64_t step = sizes[1];
      for (size_t d = sizes.size(); d-- > 2; step *= sizes[d]) s[d] = step;
      s[0] = step;
      return s;
    }
    memory::desc source(ElementType type) const { return descriptor(input, type, strides(input)); }
    memory::desc target(ElementType type) const {
      return descriptor(result, type, strides(result));
    }
    // [groups, out, in, taps...] of an array [taps..., in, groups * out].
    memory::desc weights(ElementType type) const {
      memory::dims s(kernel.size(), 1);
      s[0] = kernel[1];
      s[2] = kernel[0] * kernel[1];
      int64_t step = s[2] * kernel[2];
      for (size_t d = kernel.size(); d-- > 3; step *= kernel[d]) s[d] = step;
      return descriptor(kernel, type, s);
    }
    memory::desc any_weights(ElementType type) const {
      return memory::desc(kernel, data_type(type), memory::format_tag::any);
    }
    Key key(const Types& types) const {
      Key key = {1, static_cast<int64_t>(types.operands), static_cast<int64_t>(types.result)};
      for (const memory::dims* d : {&input, &kernel, &result, &stride, &low, &high, &dilation}) {
        append(&key, *d);
      }
      return key;
    }
  };

  static std::vector<memory::desc> matmul_descriptors(const Matrices& x, const Types& types) {
    if (x.batch == 1) {
      return {descriptor({x.m, x.k}, types.operands, {x.lhs_m, x.lhs_k}),
              descriptor({x.k, x.n}, types.operands, {x.rhs_k, x.rhs_n}),
              descriptor({x.m, x.n}, types.result, {x.n, 1})};
    }
    return {
        descriptor({x.batch, x.m, x.k}, types.operands, {x.lhs_batch, x.lhs_m, x.lhs_k}),
        descriptor({x.batch, x.k, x.n}, types.operands, {x.rhs_batch, x.rhs_k, x.rhs_n}),
        descriptor({x.batch, x.m, x.n}, types.result, {x.m * x.n, x.n, 1}),
    };
  }

  const Compiled* matmul(const Matrices& x, const Types& types) {
    const Key key = {0,
                     static_cast<int64_t>(types.operands),
                     static_cast<int64_t>(types.result),
                     x.batch,
                     x.m,
                     x.n,
                     x.k,
                     x.lhs_m,
                     x.lhs_k,
                     x.rhs_k,
                     x.rhs_n};
    return compiled(key, [&] {
      const std::vector<memory::desc> d = matmul_descriptors(x, types);
      dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(d[0], d[1], d[2]), user_scratchpad(),
                                      engine_);
      return Compiled{dnnl::matmul(pd), pd.scratchpad_desc(), pd.weights_desc()};
    });
  }

  const Compiled* convolution_of(const Shapes& s, const Types& types) {
    return compiled(s.key(types), [&] {
      dnnl::convolution_forward::desc desc(
          dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
          s.source(types.operands), s.any_weights(types.operands), s.target(types.result), s.stride,
          s.dilation, s.low, s.high);
      dnnl::convolution_forward::primitive_desc pd(desc, user_scratchpad(), engine_);
      return Compiled{dnnl::convolution_forward(pd), pd.scratchpad_desc(), pd.weights_desc()};
    });
  }

  // The threads share primitives, so each call brings its own scratch memory.
  static dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attr;
  }

  // The primitive of a key, made by `make` the first time; null where oneDNN has none.
  template <typename F>
  const Compiled* compiled(const Key& key, F&& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto [at, is_new] = primitives_.try_emplace(key);
    if (is_new) {
      try {
        at->second = std::make_unique<Compiled>(make());
      } catch (const dnnl::error&) {  // no implementation: plain loops do it
      }
    }
    return at->second.get();
  }

  void execute(const Compiled& compiled, const Arguments& arguments,
               const std::vector<memory::desc>& descriptors) {
    std::unordered_map<int, memory> args;
    for (size_t i = 0; i < arguments.size(); ++i) {
      // Operands are only read: no copy of shared memory.
      auto* data = const_cast<std::byte*>(arguments[i].second->raw());
      args.emplace(arguments[i].first, memory(descriptors[i], engine_, data));
    }
    const Buffer scratch(ElementType::kU8, {static_cast<int64_t>(compiled.scratchpad.get_size())});
    args.emplace(DNNL_ARG_SCRATCHPAD,
                 memory(compiled.scratchpad, engine_, const_cast<std::byte*>(scratch.raw())));
    dnnl::stream stream(engine_);
    compiled.primitive.execute(stream, args);
    stream.wait();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  std::mutex mutex_;
  absl::flat_hash_map<Key, std::unique_ptr<Compiled>> primitives_;
};

}  // namespace

std::unique_ptr<Backend> make_onednn_backend() { return std::make_unique<OnednnBackend>(); }

}  // namespace gspmd
