#include "tests/fuzz/random_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gspmd::fuzz {
namespace {

using Value = RandomProgram::Value;
using Dims = std::vector<int64_t>;

std::string list(const Dims& d) { return fmt::format("{}", fmt::join(d, ",")); }

std::string shape(const Value& v) { return fmt::format("{}[{}]", v.type, list(v.dims)); }

class Maker {
 public:
  explicit Maker(uint64_t seed) : rng_(seed) {}

  RandomProgram run() {
    choose_mesh();
    for (int k = 0, n = pick(2, 4); k < n; ++k) {
      Dims dims;
      for (int d = 0, rank = pick(1, 3); d < rank; ++d) dims.push_back(size());
      p_.values.push_back({k == 0 || pick(0, 3) > 0 ? "f32" : "s32", dims, "", {}, "", ""});
    }
    for (int k = 0, n = pick(15, 40); k < n; ++k) step();
    for (Value& v : p_.values) {
      if (!v.dims.empty() && pick(0, 3) == 0) v.sharding = sharding(v.dims);
    }
    int last = static_cast<int>(p_.values.size()) - 1;
    p_.results = {last};
    for (int k = 0; k < 2 && last > 2; ++k) p_.results.push_back(pick(last / 2, last - 1));
    return std::move(p_);
  }

 private:
  int pick(int low, int high) {
    return low + static_cast<int>(rng_() % static_cast<uint64_t>(high - low + 1));
  }
  int64_t size() {
    constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 8};
    return kSizes[pick(0, 6)];
  }

  void choose_mesh() {
    const std::vector<Dims> meshes = {{2}, {4}, {2, 2}, {2, 3}, {6}, {2, 2, 2}, {3}};
    mesh_ = meshes[static_cast<size_t>(pick(0, static_cast<int>(meshes.size()) - 1))];
    p_.num_partitions = 1;
    for (int64_t n : mesh_) p_.num_partitions *= n;
  }

  std::string sharding(const Dims& dims) {
    std::vector<int> axes(mesh_.size());
    for (size_t a = 0; a < axes.size(); ++a) axes[a] = static_cast<int>(a);
    std::shuffle(axes.begin(), axes.end(), rng_);
    std::vector<std::vector<int>> on(dims.size());
    int used = pick(1, static_cast<int>(axes.size()));
    for (int k = 0; k < used; ++k)
      on[static_cast<size_t>(pick(0, static_cast<int>(dims.size()) - 1))].push_back(
          axes[static_cast<size_t>(k)]);
    Dims tiles;
    std::vector<int> order;
    for (const auto& list : on) {
      int64_t n = 1;
      for (int a : list) {
        n *= mesh_[static_cast<size_t>(a)];
        order.push_back(a);
      }
      tiles.push_back(n);
    }
    int64_t copies = 1;
    for (size_t k = static_cast<size_t>(used); k < axes.size(); ++k) {
      copies *= mesh_[static_cast<size_t>(axes[k])];
      order.push_back(axes[k]);
    }
    if (copies > 1) tiles.push_back(copies);
    return fmt::format("{{devices=[{}]<=[{}]T({}){}}}", list(tiles), list(mesh_),
                       fmt::join(order, ","), copies > 1 ? " last_tile_dim_replicate" : "");
  }

  int any() { return pick(0, static_cast<int>(p_.values.size()) - 1); }
  const Value& at(int v) const { return p_.values[static_cast<size_t>(v)]; }
  // A random value that satisfies a condition, or -1.
  template <typename F>
  int find(F&& good) {
    for (int tries = 0; tries < 20; ++tries) {
      int v = any();
      if (good(at(v))) return v;
    }
    return -1;
  }
  int numbers(int min_rank = 1) {
    return find([&](const Value& v) {
      return v.type != "pred" && static_cast<int>(v.dims.size()) >= min_rank;
    });
  }
  int like(int v) {
    return find([&](const Value& w) { return w.type == at(v).type && w.dims == at(v).dims; });
  }

  int add(std::string type, Dims dims, std::string text, std::vector<int> operands,
          std::string functions = "") {
    int64_t elements = 1;
    for (int64_t d : dims) elements *= d;
    if (elements > 600) return -1;
    p_.values.push_back({std::move(type), std::move(dims), std::move(text), std::move(operands),
                         std::move(functions), ""});
    return static_cast<int>(p_.values.size()) - 1;
  }
  std::string name(int v) const { return fmt::format("v{}", v); }
  std::string fresh(std::string_view what) { return fmt::format("{}{}", what, p_.values.size()); }

  int scalar(const std::string& type, int64_t value) {
    return add(type, {}, fmt::format("constant({})", value), {});
  }
  // Whole and between -8 and 8: what is computed stays exact.
  void small(int v) {
    if (v < 0) return;
    Value x = at(v);
    if (x.type == "f32") {
      v = add("f32", x.dims, fmt::format("floor({})", name(v)), {v});
    }
    int low = scalar(x.type, -8), high = scalar(x.type, 8);
    add(x.type, x.dims, fmt::format("clamp({}, {}, {})", name(low), name(v), name(high)),
        {low, v, high});
  }
  std::string reducer(const std::string& type, const char* op, std::string* name) {
    *name = fresh(op);
    return fmt::format(
        "{0} {{ a = {1}[] parameter(0) b = {1}[] parameter(1) ROOT r = {1}[] {2}(a, b) }}\n", *name,
        type, op);
  }

  void step() {
    switch (pick(0, 21)) {
      case 0:
      case 1:
        return binary();
      case 2:
        return unary();
      case 3:
        return broadcast();
      case 4:
        return transpose();
      case 5:
        return reshape();
      case 6:
        return slice();
      case 7:
        return pad();
      case 8:
        return reverse();
      case 9:
        return concatenate();
      case 10:
      case 11:
        return reduce();
      case 12:
      case 13:
        return dot();
      case 14:
        return convolution();
      case 15:
        return dynamic_slice();
      case 16:
        return gather();
      case 17:
        return scatter();
      case 18:
        return sort();
      case 19:
        return window();
      case 20:
        return loop();
      case 21:
        return select();
    }
  }

  void binary() {
    int x = numbers(), y = x < 0 ? -1 : like(x);
    if (y < 0) return;
    const char* ops[] = {"add", "subtract", "multiply", "maximum", "minimum"};
    const char* op = ops[pick(0, 4)];
    int r = add(at(x).type, at(x).dims, fmt::format("{}({}, {})", op, name(x), name(y)), {x, y});
    small(r);
  }
  void unary() {
    int x = numbers();
    if (x < 0) return;
    const char* op = pick(0, 1) != 0 ? "negate" : "abs";
    if (pick(0, 3) == 0) {
      std::string to = at(x).type == "f32" ? "s32" : "f32";
      small(add(to, at(x).dims, fmt::format("convert({})", name(x)), {x}));
      return;
    }
    add(at(x).type, at(x).dims, fmt::format("{}({})", op, name(x)), {x});
  }
  void broadcast() {
    int x = numbers();
    if (x < 0 || at(x).dims.size() > 2) return;
    Dims dims = at(x).dims, kept;
    size_t new_dim = static_cast<size_t>(pick(0, static_cast<int>(dims.size())));
    for (size_t d = 0; d < dims.size(); ++d)
      kept.push_back(static_cast<int64_t>(d + (d >= new_dim)));
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(new_dim), size());
    add(at(x).type, dims, fmt::format("broadcast({}), dimensions={{{}}}", name(x), list(kept)),
        {x});
  }
  void transpose() {
    int x = numbers(2);
    if (x < 0) return;
    Dims order(at(x).dims.size()), dims;
    for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
    std::shuffle(order.begin(), order.end(), rng_);
    for (int64_t d : order) dims.push_back(at(x).dims[static_cast<size_t>(d)]);
    add(at(x).type, dims, fmt::format("transpose({}), dimensions={{{}}}", name(x), list(order)),
        {x});
  }
  void reshape() {
    int x = numbers();
    if (x < 0) return;
    Dims dims = at(x).dims;
    size_t d = static_cast<size_t>(pick(0, static_cast<int>(dims.size()) - 1));
    if (pick(0, 1) != 0 && d + 1 < dims.size()) {
      dims[d] *= dims[d + 1];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    } else {
      int64_t factor = dims[d] % 2 == 0 ? 2 : dims[d] % 3 == 0 ? 3 : 1;
      dims[d] /= factor;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(d) + pick(0, 1), factor);
      if (dims.size() > 4) return;
    }
    add(at(x).type, dims, fmt::format("reshape({})", name(x)), {x});
  }
  void slice() {
    int x = numbers();
    if (x < 0) return;
    Dims dims;
    std::string ranges;
    for (int64_t n : at(x).dims) {
      int64_t low = pick(0, static_cast<int>(n) - 1),
              high = pick(static_cast<int>(low) + 1, static_cast<int>(n));
      int64_t stride = pick(0, 3) == 0 ? 2 : 1;
      if (pick(0, 1) != 0) low = 0, high = n, stride = 1;
      dims.push_back((high - low + stride - 1) / stride);
      ranges += fmt::format("{}[{}:{}:{}]", ranges.empty() ? "" : ", ", low, high, stride);
    }
    add(at(x).type, dims, fmt::format("slice({}), slice={{{}}}", name(x), ranges), {x});
  }
  void pad() {
    int x = numbers();
    if (x < 0) return;
    Dims dims;
    std::string text;
    for (int64_t n : at(x).dims) {
      int64_t low = pick(-1, 2), high = pick(-1, 2), inner = pick(0, 3) == 0 ? 1 : 0;
      if (n + (n - 1) * inner + low + high < 1 || pick(0, 1) != 0) low = high = inner = 0;
      dims.push_back(n + (n - 1) * inner + low + high);
      text += fmt::format("{}{}_{}_{}", text.empty() ? "" : "x", low, high, inner);
    }
    int v = scalar(at(x).type, pick(-3, 3));
    add(at(x).type, dims, fmt::format("pad({}, {}), padding={}", name(x), name(v), text), {x, v});
  }
  void reverse() {
    int x = numbers();
    if (x < 0) return;
    int d = pick(0, static_cast<int>(at(x).dims.size()) - 1);
    add(at(x).type, at(x).dims, fmt::format("reverse({}), dimensions={{{}}}", name(x), d), {x});
  }
  void concatenate() {
    int x = numbers();
    if (x < 0) return;
    size_t d = static_cast<size_t>(pick(0, static_cast<int>(at(x).dims.size()) - 1));
    int y = find([&](const Value& w) {
      if (w.type != at(x).type || w.dims.size() != at(x).dims.size()) return false;
      for (size_t k = 0; k < w.dims.size(); ++k) {
        if (k != d && w.dims[k] != at(x).dims[k]) return false;
      }
      return true;
    });
    if (y < 0) return;
    Dims dims = at(x).dims;
    dims[d] += at(y).dims[d];
    add(at(x).type, dims,
        fmt::format("concatenate({}, {}), dimensions={{{}}}", name(x), name(y), d), {x, y});
  }
  void reduce() {
    int x = numbers();
    if (x < 0) return;
    Dims reduced, kept;
    for (size_t d = 0; d < at(x).dims.size(); ++d) {
      if (pick(0, 1) != 0) {
        reduced.push_back(static_cast<int64_t>(d));
      } else {
        kept.push_back(at(x).dims[d]);
      }
    }
    const char* ops[] = {"add", "maximum", "minimum"};
    std::string f, functions = reducer(at(x).type, ops[pick(0, 2)], &f);
    int init = scalar(at(x).type, pick(-2, 2));
    small(add(at(x).type, kept,
              fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", name(x), name(init),
                          list(reduced), f),
              {x, init}, functions));
  }
  void dot() {
    int x = numbers();
    if (x < 0) return;
    size_t c = static_cast<size_t>(pick(0, static_cast<int>(at(x).dims.size()) - 1));
    int y = find([&](const Value& w) {
      return w.type == at(x).type &&
             std::find(w.dims.begin(), w.dims.end(), at(x).dims[c]) != w.dims.end();
    });
    if (y < 0) return;
    size_t e = static_cast<size_t>(std::find(at(y).dims.begin(), at(y).dims.end(), at(x).dims[c]) -
                                   at(y).dims.begin());
    Dims dims;
    std::string batch;
    bool batched = at(x).dims.size() > 1 && at(y).dims.size() > 1 && c > 0 && e > 0 &&
                   at(x).dims[0] == at(y).dims[0];
    if (batched) {
      dims.push_back(at(x).dims[0]);
      batch = ", lhs_batch_dims={0}, rhs_batch_dims={0}";
    }
    for (size_t d = batched; d < at(x).dims.size(); ++d) {
      if (d != c) dims.push_back(at(x).dims[d]);
    }
    for (size_t d = batched; d < at(y).dims.size(); ++d) {
      if (d != e) dims.push_back(at(y).dims[d]);
    }
    if (dims.size() > 4) return;
    small(add(at(x).type, dims,
              fmt::format("dot({}, {}){}, lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}",
                          name(x), name(y), batch, c, e),
              {x, y}));
  }
  void convolution() {
    int x = find([](const Value& v) { return v.type == "f32" && v.dims.size() == 3; });
    if (x < 0) return;
    int64_t features = at(x).dims[2], out = pick(1, 4), taps = pick(1, 3);
    int k = add("f32", {taps, features, out}, "", {});
    int64_t low = pick(0, 2), high = pick(0, 2), stride = pick(1, 2), base = pick(1, 2);
    int64_t dilated = (at(x).dims[1] - 1) * base + 1 + low + high;
    if (dilated < taps) return;
    small(add(
        "f32", {at(x).dims[0], (dilated - taps) / stride + 1, out},
        fmt::format("convolution({}, {}), window={{size={} stride={} pad={}_{} lhs_dilate={}}}, "
                    "dim_labels=b0f_0io->b0f",
                    name(x), name(k), taps, stride, low, high, base),
        {x, k}));
  }
  int index(const Dims& dims) {
    int x = find([&](const Value& v) { return v.type == "s32" && v.dims == dims; });
    return x >= 0 ? x : add("s32", dims, "", {});
  }
  void dynamic_slice() {
    int x = numbers();
    if (x < 0) return;
    std::vector<int> operands{x}, starts;
    std::string names;
    Dims dims;
    for (int64_t n : at(x).dims) {
      dims.push_back(pick(0, 1) != 0 ? n : pick(1, static_cast<int>(n)));
      starts.push_back(index({}));
    }
    for (int s : starts) {
      operands.push_back(s);
      names += ", " + name(s);
    }
    std::string type = at(x).type;
    int part = add(
        type, dims,
        fmt::format("dynamic-slice({}{}), dynamic_slice_sizes={{{}}}", name(x), names, list(dims)),
        operands);
    if (part < 0 || pick(0, 1) != 0) return;
    operands.insert(operands.begin() + 1, part);
    add(type, at(x).dims, fmt::format("dynamic-update-slice({}, {}{})", name(x), name(part), names),
        operands);
  }
  void gather() {
    int x = find([](const Value& v) { return v.type != "pred" && v.dims.size() == 2; });
    if (x < 0) return;
    int64_t n = size();
    int i = index({n, 1});
    add(at(x).type, {n, at(x).dims[1]},
        fmt::format(
            "gather({}, {}), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
            "index_vector_dim=1, slice_sizes={{1,{}}}",
            name(x), name(i), at(x).dims[1]),
        {x, i});
  }
  void scatter() {
    int x = find([](const Value& v) { return v.type != "pred" && v.dims.size() == 2; });
    int u = x < 0 ? -1 : find([&](const Value& v) {
      return v.type == at(x).type && v.dims.size() == 2 && v.dims[1] == at(x).dims[1];
    });
    if (u < 0) return;
    int i = index({at(u).dims[0], 1});
    std::string f, functions = reducer(at(x).type, "add", &f);
    small(add(
        at(x).type, at(x).dims,
        fmt::format("scatter({}, {}, {}), update_window_dims={{1}}, inserted_window_dims={{0}}, "
                    "scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={}",
                    name(x), name(i), name(u), f),
        {x, i, u}, functions));
  }
  void sort() {
    int x = numbers();
    if (x < 0) return;
    int d = pick(0, static_cast<int>(at(x).dims.size()) - 1);
    std::string f = fresh("less");
    std::string functions = fmt::format(
        "{0} {{ a = {1}[] parameter(0) b = {1}[] parameter(1) ROOT r = pred[] compare(a, b), "
        "direction=LT }}\n",
        f, at(x).type);
    add(at(x).type, at(x).dims,
        fmt::format("sort({}), dimensions={{{}}}, to_apply={}", name(x), d, f), {x}, functions);
  }
  void window() {
    int x = numbers();
    if (x < 0) return;
    size_t d = static_cast<size_t>(pick(0, static_cast<int>(at(x).dims.size()) - 1));
    std::string sizes, pads;
    for (size_t k = 0; k < at(x).dims.size(); ++k) {
      int64_t n = k == d ? at(x).dims[d] : 1;
      sizes += fmt::format("{}{}", k == 0 ? "" : "x", n);
      pads += fmt::format("{}{}_0", k == 0 ? "" : "x", n - 1);
    }
    std::string f, functions = reducer(at(x).type, pick(0, 1) != 0 ? "add" : "maximum", &f);
    int init = scalar(at(x).type, functions.find("maximum") != std::string::npos ? -100 : 0);
    small(add(at(x).type, at(x).dims,
              fmt::format("reduce-window({}, {}), window={{size={} pad={}}}, to_apply={}", name(x),
                          name(init), sizes, pads, f),
              {x, init}, functions));
  }
  // A few trips of y = clamp(y + x).
  void loop() {
    int x = numbers(), y = x < 0 ? -1 : like(x);
    if (y < 0) return;
    std::string s = shape(at(x)), id = fresh("loop"), state = fmt::format("(s32[], {}, {})", s, s);
    std::string type = at(x).type;
    std::string low = fmt::format("l = {0}[] constant(-8)\n  h = {0}[] constant(8)", type);
    std::string functions = fmt::format(
        "{0}_body {{\n  t = {1} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n"
        "  x = {2} get-tuple-element(t), index=1\n  y = {2} get-tuple-element(t), index=2\n"
        "  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  z = {2} add(x, y)\n  {3}\n"
        "  c = {2} clamp(l, z, h)\n  ROOT r = {1} tuple(j, {4}, c)\n}}\n"
        "{0}_cond {{\n  t = {1} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n"
        "  n = s32[] constant({5})\n  ROOT r = pred[] compare(i, n), direction=LT\n}}\n"
        "{0} {{\n  x = {2} parameter(0)\n  y = {2} parameter(1)\n  zero = s32[] constant(0)\n"
        "  t = {1} tuple(zero, x, y)\n  w = {1} while(t), condition={0}_cond, body={0}_body\n"
        "  ROOT r = {2} get-tuple-element(w), index=2\n}}\n",
        id, state, s, low, pick(0, 1) != 0 ? "x" : "y", pick(0, 3));
    add(type, at(x).dims, fmt::format("call({}, {}), to_apply={}", name(x), name(y), id), {x, y},
        functions);
  }
  void select() {
    int x = numbers(), y = x < 0 ? -1 : like(x);
    if (y < 0) return;
    int p = add("pred", at(x).dims, fmt::format("compare({}, {}), direction=GT", name(x), name(y)),
                {x, y});
    if (p < 0) return;
    add(at(x).type, at(x).dims, fmt::format("select({}, {}, {})", name(p), name(y), name(x)),
        {p, y, x});
  }

  std::mt19937_64 rng_;
  RandomProgram p_;
  Dims mesh_;
};

}  // namespace

RandomProgram make_program(uint64_t seed) { return Maker(seed * 2654435761U + 12345).run(); }

std::string RandomProgram::to_hlo() const {
  std::vector<bool> needed(values.size());
  for (int r : results) needed[static_cast<size_t>(r)] = true;
  for (size_t k = values.size(); k-- > 0;) {
    if (!needed[k]) continue;
    for (int o : values[k].operands) needed[static_cast<size_t>(o)] = true;
  }
  std::string functions, body;
  int parameters = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    if (!needed[k]) continue;
    const Value& v = values[k];
    functions += v.functions;
    std::string text = v.text.empty() ? fmt::format("parameter({})", parameters++) : v.text;
    body += fmt::format("  v{} = {} {}{}\n", k, shape(v), text,
                        v.sharding.empty() ? "" : ", sharding=" + v.sharding);
  }
  std::string types, names;
  for (int r : results) {
    types += fmt::format("{}{}", types.empty() ? "" : ", ", shape(values[static_cast<size_t>(r)]));
    names += fmt::format("{}v{}", names.empty() ? "" : ", ", r);
  }
  return fmt::format(
      "HloModule random, num_partitions={}\n{}ENTRY main {{\n{}  ROOT all = ({}) tuple({})\n}}\n",
      num_partitions, functions, body, types, names);
}

}  // namespace gspmd::fuzz
