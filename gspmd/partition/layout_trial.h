#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include <optional>
#include <vector>

#include "gspmd/partition/chooser.h"

namespace gspmd {

// The values of one computation, their users, and how they are laid out in a trial: in some other
// ways than the table says.
class Neighbourhood {
 public:
  using Layouts = absl::InlinedVector<Sharding, 4>;
  // Where a changed value was found, going out from the seed of a trial: an operator, the producer
  // or a user of an earlier changed value, and its result or an operand.
  struct Place {
    int change = -1;   // -1: the operator is the seed
    int user = -1;     // of that changed value; -1: its producer
    int operand = -1;  // -1: the result
  };
  struct Changed {
    Instr* value;
    Sharding layout;
    Sharding from = {};
    Place place = {};
  };

  Neighbourhood(PartitionState& s, Chooser& chooser, const Computation& c)
      : s_(s), chooser_(chooser), users_(c), c_(c) {}

  // Has a rule, and neither is a reshard nor stands at a region's border.
  bool is_operator(const Instr& i) const;
  // Whether the layout of `i` may be changed: nobody outside sees it, and nobody asked for it.
  bool is_free(const Instr& i) const;
  absl::Span<Instr* const> users(const Instr& i) const { return users_.users(i); }

  const Choice& before(const Instr& op);  // as the table says
  // With the trial's layouts; `result` in place of the result's.
  const Choice& after(const Instr& op, Sharding result = {});
  // The candidate that is cheapest if the free tensors of `op` move for nothing: its layouts.
  // Nullopt where that is not cheaper than what stands.
  std::optional<Layouts> wish(const Instr& op);

  bool may_be(const Instr& value, Sharding layout);

  // Layouts of the operator's result that are worth a try, the most promising first: other parallel
  // factors take its idle or costly axes, partial results are scattered.
  std::vector<Sharding> other_layouts(const Instr& op);

  // Units of moving a value.
  int64_t move(const Instr& value, Sharding from, Sharding to);
  // How a user that is no operator wants a value that is laid out as `now`: reshards and tuples as
  // they are laid out themselves.
  Sharding wanted_by(const Instr& user, int operand, Sharding now) const;

  Sharding table(const Instr& i) const { return s_.shardings.leaf(i); }
  Sharding layout(const Instr& i) const;  // in the trial
  bool is_changed(const Instr& i) const { return bool(changed_.get(i)); }
  void change(Instr* value, Sharding layout) { changed_.set(*value, layout); }
  void forget(const Instr& value) { changed_.set(value, Sharding()); }
  void commit(absl::Span<const Changed> changes);  // into the table

 private:
  struct Now {
    Layouts operands, results;
  };
  Now situation(const Instr& op) const;
  std::vector<FactorAxes> other_factors(const Iteration& it, const FactorAxes& now) const;
  bool can_pass_sums(const Instr& value) const;
  void add_scattered(const Instr& op, Sharding made, std::vector<Sharding>* out);

  PartitionState& s_;
  Chooser& chooser_;
  UserMap users_;
  const Computation& c_;
  InstrTable<const Choice*> known_;  // `before`
  InstrTable<Sharding> changed_;
};

// A set of changed layouts, and what it would gain.
class LayoutTrial {
 public:
  explicit LayoutTrial(Neighbourhood& n) : n_(n) {}
  ~LayoutTrial();
  LayoutTrial(const LayoutTrial&) = delete;

  void set(Instr* value, Sharding layout, Neighbourhood::Place place = {});
  // Makes the changes of another trial at the same places around `seed`; false where that is not
  // like the other's.
  bool replay(Instr* seed, absl::Span<const Neighbourhood::Changed> changes);
  // Lays out the free neighbours of `op` as suits it best; false where none changes.
  bool extend(Instr* op);
  // Extends the operator that the changes made dearest; false where there is none.
  bool let_worst_follow();

  // What the changes so far gain, in units; negative where they cost.
  int64_t gain();
  absl::Span<const Neighbourhood::Changed> changes() const { return changes_; }

 private:
  struct Affected {
    Instr* op;
    const Choice* before;
    const Choice* after;
    Neighbourhood::Place place;
    bool stuck = false, dirty = true;
  };
  struct Touched {
    const Instr* value;
    int64_t more;  // units that it costs more to move than before
    bool dirty = true;
  };

  void touch(const Instr& value);
  void affect(Instr* op, Neighbourhood::Place place);
  void refresh();
  using Targets = absl::InlinedVector<Sharding, 8>;
  int64_t cost(const Instr& v, bool after);
  void add_targets(const Instr& v, const Instr& u, bool after, Targets* targets);
  bool follow_reshard(const Instr& value);

  Neighbourhood& n_;
  std::vector<Neighbourhood::Changed> changes_;
  std::vector<Affected> affected_;
  std::vector<Touched> touched_;
  absl::flat_hash_map<const Instr*, uint32_t> affected_at_, touched_at_;
};

}  // namespace gspmd
