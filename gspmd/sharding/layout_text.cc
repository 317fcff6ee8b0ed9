#include "gspmd/sharding/layout_text.h"

#include <charconv>

namespace gspmd {
namespace {

class LayoutReader {
 public:
  LayoutReader(std::string_view text, const Mesh* mesh) : rest_(text), mesh_(*mesh) {}

  std::optional<ShardingData> read() {
    ShardingData data;
    data.mesh = &mesh_;
    if (!take("[")) return std::nullopt;
    while (good_ && !take("]")) {
      if (!data.dims.empty()) expect(", ");
      data.dims.push_back(axes());
    }
    if (take(" replicated=")) data.replicated = axes().set();
    if (take(" manual=")) data.manual = axes().set();
    if (take(" pending=")) {
      data.combiner = combiner();
      data.pending = axes().set();
    }
    if (!good_ || !rest_.empty()) return std::nullopt;
    return data;
  }

 private:
  bool take(std::string_view text) {
    bool taken = rest_.starts_with(text);
    if (taken) rest_.remove_prefix(text.size());
    return taken;
  }
  int64_t number(std::string_view digits) {
    int64_t n = 0;
    auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    good_ &= fault == std::errc() && end == digits.data() + digits.size() && n > 0;
    return n;
  }
  void expect(std::string_view text) { good_ &= take(text); }

  // "{x,y:(2)4}"
  AxisList axes() {
    AxisList list;
    expect("{");
    while (good_ && !take("}")) {
      if (!list.empty()) expect(",");
      std::string_view name = rest_.substr(0, rest_.find_first_of(",}"));
      rest_.remove_prefix(name.size());
      add(name, &list);
    }
    return list;
  }

  // The parts of one user's axis, all or ":(before)size" of it.
  void add(std::string_view name, AxisList* list) {
    int64_t before = 1, size = 0;
    size_t part = name.rfind(":(");
    if (part != std::string_view::npos) {
      std::string_view numbers = name.substr(part + 2);
      size_t close = numbers.find(')');
      if (close == std::string_view::npos) {
        good_ = false;
        return;
      }
      before = number(numbers.substr(0, close));
      size = number(numbers.substr(close + 1));
      name = name.substr(0, part);
    }
    int added = 0;
    for (AxisId a = 0; a < mesh_.num_axes(); ++a) {
      const Mesh::Axis& axis = mesh_.axis(a);
      if (axis.name != name || axis.pre < before) continue;
      if (size > 0 && axis.pre >= before * size) continue;
      if (used_.contains(a)) good_ = false;
      if (!good_) return;
      used_.insert(a);
      list->push_back(a);
      ++added;
    }
    good_ &= added > 0;
  }

  Combiner combiner() {
    for (Combiner c : {Combiner::kSum, Combiner::kProduct, Combiner::kMin, Combiner::kMax,
                       Combiner::kAnd, Combiner::kOr, Combiner::kXor}) {
      if (take(to_string(c))) return c;
    }
    good_ = false;
    return Combiner::kNone;
  }

  std::string_view rest_;
  const Mesh& mesh_;
  AxisSet used_;
  bool good_ = true;
};

}  // namespace

std::optional<ShardingData> parse_layout(std::string_view text, const Mesh* mesh) {
  return LayoutReader(text, mesh).read();
}

}  // namespace gspmd
