#include "gspmd/sharding/reshard_rearrange.h"

#include <utility>

namespace gspmd {
namespace {

constexpr int kMaxRearrangements = 24;   // permutations found from one state
constexpr int kMaxRearrangeSteps = 400;  // and the work to find them

class Rearrangements {
 public:
  Rearrangements(const ReshardProblem& p, const Walk& at) : p_(p), at_(at) {
    for (const AxisList& to : p.to) targeted_ |= to.set();
    for (const DimLayout& d : at.state().dims) {
      current_.push_back(d.axes);
      available_ |= d.axes.set();
    }
    available_ |= at.free_units() & targeted_;
  }
  std::vector<UnitLists> find() && {
    assign(0, AxisSet());
    return std::move(found_);
  }

 private:
  bool spent() { return ++steps_ > kMaxRearrangeSteps || found_.size() >= kMaxRearrangements; }

  void assign(int d, AxisSet used) {
    if (spent()) return;
    if (d == p_.num_dims()) {
      if (lists_ != current_) found_.push_back(lists_);
      return;
    }
    if (!current_[d].set().intersects(used)) next(d, current_[d], used);
    const AxisList& to = p_.to[d];
    for (int n = to.size(); n >= 0; --n) {
      AxisList prefix = to.prefix(n);
      bool usable = available_.contains_all(prefix.set()) && !prefix.set().intersects(used);
      int64_t have = at_.product(prefix), want = at_.shards(d);
      if (usable && want % have == 0)
        fill(d, prefix, AxisList(), want / have, 0, used | prefix.set());
    }
  }

  // Adds units of number >= `start` until `want` is reached.
  void fill(int d, const AxisList& prefix, const AxisList& others, int64_t want, int start,
            AxisSet used) {
    if (spent()) return;
    if (want == 1) {
      AxisList list = prefix;
      list.append(in_order(others));
      if (!(list == current_[d])) next(d, list, used);
      return;
    }
    for (int u = start; u < static_cast<int>(p_.unit_sizes.size()); ++u) {
      if (!available_.contains(u) || used.contains(u) || want % p_.unit_sizes[u] != 0) continue;
      AxisList more = others;
      more.push_back(u);
      fill(d, prefix, more, want / p_.unit_sizes[u], u + 1, used | AxisSet{static_cast<AxisId>(u)});
    }
  }

  void next(int d, const AxisList& list, AxisSet used) {
    lists_.push_back(list);
    assign(d + 1, used | list.set());
    lists_.pop_back();
  }

  // Units without a target first, then by target dimension and place in it.
  AxisList in_order(const AxisList& units) const {
    AxisList out;
    for (AxisId u : units) {
      if (!targeted_.contains(u)) out.push_back(u);
    }
    for (const AxisList& to : p_.to) {
      for (AxisId u : to) {
        if (units.contains(u)) out.push_back(u);
      }
    }
    return out;
  }

  const ReshardProblem& p_;
  const Walk& at_;
  AxisSet targeted_, available_;
  UnitLists current_, lists_;
  std::vector<UnitLists> found_;
  int steps_ = 0;
};

}  // namespace

std::vector<UnitLists> rearrangements(const ReshardProblem& problem, const Walk& at) {
  return Rearrangements(problem, at).find();
}

}  // namespace gspmd
