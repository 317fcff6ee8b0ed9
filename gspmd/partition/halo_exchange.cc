#include "gspmd/partition/halo_exchange.h"

#include <algorithm>
#include <vector>

#include "gspmd/base/check.h"

namespace gspmd {
namespace {

// One exchange being written.
class Exchange {
 public:
  Exchange(Emitter& e, Instr* local, const SplitDim& split, const HaloNeed& need)
      : e_(e), local_(local), split_(split), need_(need), plan_(plan_halo(need)) {
    int64_t reach = need.shards * need.block + std::abs(need.alpha) * need.shards +
                    std::abs(need.beta) + need.length;
    type_ = Emitter::index_type(4 * reach);
  }

  Instr* run() {
    switch (plan_.form) {
      case HaloPlan::Form::kLocal:
        return cut(local_, 0, 0);
      case HaloPlan::Form::kGather:
        return cut_gathered();
      case HaloPlan::Form::kShift:
        if (std::optional<Instr*> joined = join_neighbours()) return cut(*joined, -plan_.left, 0);
        return place_pieces(true);
      case HaloPlan::Form::kStride:
        return place_pieces(false);
    }
    GSPMD_CHECK(false, "no form of a halo");
  }

 private:
  // `x` holds positions from i*block + shift on (in the gathered form, from 0 on: alpha_of_x = 0);
  // cuts the needed interval out of it.
  Instr* cut(Instr* x, int64_t shift, int64_t gathered) {
    int64_t alpha = gathered ? need_.alpha : need_.alpha - need_.block;
    int64_t beta = need_.beta - shift;
    int64_t last = alpha * (need_.shards - 1) + beta;
    int64_t low = std::min(beta, last), high = std::max(beta, last) + need_.length;
    int64_t below = std::max<int64_t>(0, -low),
            above = std::max<int64_t>(0, high - x->shape.dim(split_.dim));
    if (alpha == 0 && beta >= x->shape.dim(split_.dim)) return zeros(need_.length);
    if (alpha == 0) {  // the same place on every shard
      x = e_.pad(x, split_.dim, below, above, 0, e_.zero(x->shape.type()));
      return e_.slice(x, split_.dim, beta + below, beta + below + need_.length);
    }
    x = e_.pad(x, split_.dim, below, above, 0, e_.zero(x->shape.type()));
    return e_.dynamic_slice(x, split_.dim, affine(e_, split_, alpha, beta + below, type_),
                            need_.length);
  }

  Instr* cut_gathered() {
    return cut(e_.all_gather(local_, split_.dim, *split_.mesh, split_.axes), 0, 1);
  }

  Instr* zeros(int64_t length) {
    DimVector dims(local_->shape.dims().begin(), local_->shape.dims().end());
    dims[split_.dim] = length;
    return e_.broadcast(e_.zero(local_->shape.type()), dims);
  }

  // [left neighbours' ends | own block | right neighbours' starts], where the hops are whole blocks
  // but for the outermost.
  std::optional<Instr*> join_neighbours() {
    std::vector<const HaloHop*> left, right;
    for (const HaloHop& hop : plan_.hops) (hop.step < 0 ? left : right).push_back(&hop);
    std::reverse(right.begin(), right.end());  // outermost first on both sides
    if (!are_whole(left, -1, plan_.left) || !are_whole(right, 1, plan_.right)) return std::nullopt;
    std::vector<Instr*> pieces;
    for (const HaloHop* hop : left) pieces.push_back(shifted(*hop));
    pieces.push_back(local_);
    for (auto hop = right.rbegin(); hop != right.rend(); ++hop) pieces.push_back(shifted(**hop));
    DimVector dims(local_->shape.dims().begin(), local_->shape.dims().end());
    dims[split_.dim] += plan_.left + plan_.right;
    return e_.add(Opcode::kConcatenate, e_.context().with_dims(local_->shape, dims), pieces,
                  e_.context().attrs(DimsAttrs{e_.context().dims({split_.dim})}));
  }

  // Steps sign*k ... sign*1, all as wide as a block but the first, together `reach`.
  bool are_whole(const std::vector<const HaloHop*>& hops, int64_t sign, int64_t reach) const {
    int64_t sum = 0, k = static_cast<int64_t>(hops.size());
    for (size_t n = 0; n < hops.size(); ++n, --k) {
      if (hops[n]->step != sign * k || (n > 0 && hops[n]->width != need_.block)) return false;
      sum += hops[n]->width;
    }
    return sum == reach;
  }

  // What shard i + step ends (step < 0) or starts with.
  Instr* shifted(const HaloHop& hop) {
    int64_t start = hop.step < 0 ? need_.block - hop.width : 0;
    Instr* piece = e_.slice(local_, split_.dim, start, start + hop.width);
    DevicePermutation p;
    p.kind = DevicePermutation::Kind::kShift;
    p.axes = split_.axes;
    p.shift = -hop.step;
    return e_.collective_permute(piece, *split_.mesh, p);
  }

  // The general form: every piece is put at its place into a buffer with margins (see hop_offset).
  Instr* place_pieces(bool with_own) {
    int64_t margin = with_own ? need_.block : 0;
    for (const HaloHop& hop : plan_.hops) margin = std::max(margin, hop.width);
    Instr* buffer = zeros(need_.length + 2 * margin);
    Instr* i = e_.coordinate(*split_.mesh, split_.axes, type_);
    if (with_own) buffer = put(buffer, local_, margin, i, i, nullptr);
    for (const HaloHop& hop : plan_.hops) {
      Instr* piece =
          e_.dynamic_slice(local_, split_.dim, offset(i, target(hop, i), hop.width), hop.width);
      DevicePermutation p;
      p.kind = DevicePermutation::Kind::kHop;
      p.axes = split_.axes;
      p.need = need_;
      p.hop = hop;
      piece = e_.collective_permute(piece, *split_.mesh, p);
      Instr* valid = nullptr;
      Instr* j = source(hop, i, &valid);
      buffer = put(buffer, piece, margin, i, j, valid);
    }
    return e_.slice(buffer, split_.dim, margin, margin + need_.length);
  }

  Instr* put(Instr* buffer, Instr* piece, int64_t margin, Instr* receiver, Instr* sender,
             Instr* valid) {
    int64_t width = piece->shape.dim(split_.dim);
    Instr* at = add(times(sender, need_.block), offset(sender, receiver, width));
    at = plus(sub(at, first(receiver)), margin);
    if (valid != nullptr) at = e_.select(valid, at, constant(0));
    return e_.dynamic_update_slice(buffer, piece, split_.dim, at);
  }

  // halo.h's hop_offset, hop_target and hop_source as emitted arithmetic.
  Instr* offset(Instr* sender, Instr* receiver, int64_t width) {
    if (width == need_.block) return constant(0);
    Instr* x = sub(first(receiver), times(sender, need_.block));
    return e_.clamp(constant(0), x, constant(need_.block - width));
  }
  Instr* target(const HaloHop& hop, Instr* j) {
    if (hop.kind == HaloHop::Kind::kShift) return plus(j, -hop.step);
    HaloNeed need = oriented(hop);
    Instr* from = flipped(hop, j);
    Instr* x;
    if (hop.kind == HaloHop::Kind::kByTarget) {
      x = plus(divide(plus(times(from, need.block), -need.beta - need.length), need.alpha),
               1 + hop.step);
    } else {
      x = plus(divide(plus(times(plus(from, -hop.step), need.block), -need.beta - 1), need.alpha),
               1);
    }
    return flipped(hop, x);
  }
  Instr* source(const HaloHop& hop, Instr* i, Instr** valid) {
    if (hop.kind == HaloHop::Kind::kShift) return plus(i, hop.step);
    HaloNeed need = oriented(hop);
    Instr* to = flipped(hop, i);
    const auto start = [&](Instr* k) { return plus(times(k, need.alpha), need.beta); };
    if (hop.kind == HaloHop::Kind::kBySource) {
      return flipped(hop, plus(divide(start(to), need.block), hop.step));
    }
    Instr* j = divide(plus(start(plus(to, -hop.step)), need.length - 1), need.block);
    Instr* end_before = plus(start(plus(to, -hop.step - 1)), need.length);
    *valid = e_.compare(Direction::kLe, end_before, times(j, need.block));
    return flipped(hop, j);
  }
  HaloNeed oriented(const HaloHop& hop) const {
    HaloNeed need = need_;
    if (hop.mirrored) {
      need.beta += need.alpha * (need.shards - 1);
      need.alpha = -need.alpha;
    }
    return need;
  }
  Instr* flipped(const HaloHop& hop, Instr* i) {
    return hop.mirrored ? sub(constant(need_.shards - 1), i) : i;
  }

  Instr* constant(int64_t v) { return e_.integer(type_, v); }
  Instr* first(Instr* i) { return plus(times(i, need_.alpha), need_.beta); }
  Instr* plus(Instr* x, int64_t c) { return c == 0 ? x : e_.binary(Opcode::kAdd, x, constant(c)); }
  Instr* times(Instr* x, int64_t c) {
    return c == 1 ? x : e_.binary(Opcode::kMultiply, x, constant(c));
  }
  Instr* add(Instr* a, Instr* b) { return e_.binary(Opcode::kAdd, a, b); }
  Instr* sub(Instr* a, Instr* b) { return e_.binary(Opcode::kSubtract, a, b); }
  // Rounds down for negative numbers too: HLO's divide truncates, so the dividend is lifted above 0
  // first.
  Instr* divide(Instr* x, int64_t d) {
    int64_t reach = 2 * (need_.shards * need_.block + std::abs(need_.alpha) * need_.shards +
                         std::abs(need_.beta) + need_.length);
    int64_t lift = ceil_div(reach, d);
    return plus(e_.binary(Opcode::kDivide, plus(x, lift * d), constant(d)), -lift);
  }

  Emitter& e_;
  Instr* local_;
  const SplitDim& split_;
  const HaloNeed& need_;
  HaloPlan plan_;
  ElementType type_;
};

}  // namespace

Instr* affine(Emitter& e, const SplitDim& split, int64_t alpha, int64_t beta, ElementType type) {
  if (alpha == 0 || split.axes.empty()) return e.integer(type, beta);
  Instr* i = e.coordinate(*split.mesh, split.axes, type);
  if (alpha != 1) i = e.binary(Opcode::kMultiply, i, e.integer(type, alpha));
  return beta == 0 ? i : e.binary(Opcode::kAdd, i, e.integer(type, beta));
}

Instr* mask_outside(Emitter& e, Instr* x, int dim, Instr* start, int64_t low, int64_t high,
                    Instr* fill) {
  int64_t size = x->shape.dim(dim);
  ElementType type =
      start != nullptr ? start->shape.type() : Emitter::index_type(std::max(size, high));
  Instr* at = e.iota(type, {size}, 0);
  if (start != nullptr) at = e.binary(Opcode::kAdd, at, e.broadcast(start, {size}));
  Instr* inside = nullptr;
  if (low != INT64_MIN)
    inside = e.compare(Direction::kGe, at, e.broadcast(e.integer(type, low), {size}));
  if (high != INT64_MAX) {
    Instr* below = e.compare(Direction::kLt, at, e.broadcast(e.integer(type, high), {size}));
    inside = inside == nullptr ? below : e.binary(Opcode::kAnd, inside, below);
  }
  if (inside == nullptr) return x;
  Instr* predicate = x->shape.rank() == 1 ? inside : e.broadcast(inside, x->shape.dims(), {dim});
  return e.select(predicate, x, e.broadcast(fill, x->shape.dims()));
}

namespace {

// A constant whose every bit is 0, so not -0.
bool is_zero(const Instr& i) {
  if (i.opcode != Opcode::kConstant) return false;
  absl::Span<const std::byte> bits = i.attrs<ConstantAttrs>().literal->data;
  return std::all_of(bits.begin(), bits.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

Instr* exchange_halo(Emitter& e, Instr* local, const SplitDim& split, const HaloNeed& need,
                     Instr* fill) {
  Instr* x = Exchange(e, local, split, need).run();
  if (fill == nullptr) return x;
  // Beyond the array's ends there is no sender, and what nobody sends is 0; a block's own padding
  // is not.
  if (is_zero(*fill) && need.size == need.shards * need.block) return x;
  int64_t last = need.first(need.shards - 1);
  int64_t low = std::min(need.beta, last), high = std::max(need.beta, last) + need.length;
  if (low >= 0 && high <= need.size) return x;
  Emitter::Because because(e, Reason::kMask);
  ElementType type = Emitter::index_type(2 * (std::abs(low) + std::abs(high) + need.size));
  Instr* start = affine(e, split, need.alpha, need.beta, type);
  return mask_outside(e, x, split.dim, start, low >= 0 ? INT64_MIN : 0,
                      high <= need.size ? INT64_MAX : need.size, fill);
}

}  // namespace gspmd
