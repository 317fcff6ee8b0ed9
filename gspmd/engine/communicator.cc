#include "gspmd/engine/communicator.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <numeric>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/sharding/device_groups.h"

namespace gspmd {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

std::vector<std::pair<int64_t, int64_t>> pairs_of(const PermuteAttrs& a) {
  if (a.permutation != nullptr) return expand(*a.permutation, *a.mesh);
  return {a.pairs.begin(), a.pairs.end()};
}

// Devices that a permutation connects meet; the others are alone.
Groups connected(const std::vector<std::pair<int64_t, int64_t>>& pairs, int64_t n) {
  std::vector<int64_t> parent(n);
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&](int64_t x) {
    while (parent[x] != x) x = parent[x] = parent[parent[x]];
    return x;
  };
  for (auto [a, b] : pairs) {
    if (a < 0 || b < 0 || a >= n || b >= n)
      throw Error("source_target_pairs name a device that does not exist");
    parent[find(a)] = find(b);
  }
  Groups groups;
  absl::flat_hash_map<int64_t, size_t> index;
  for (int64_t d = 0; d < n; ++d) {
    auto [it, is_new] = index.try_emplace(find(d), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(d);
  }
  return groups;
}

Groups all_in_one(int64_t n) {
  std::vector<int64_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

// Without a channel, ids are replicas, and every partition talks to itself only (there is one
// replica).
Groups each_alone(int64_t n) {
  Groups groups;
  for (int64_t d = 0; d < n; ++d) groups.push_back({d});
  return groups;
}

Groups groups_of(const Instr& i, int64_t n) {
  if (const auto* p = i.attributes.get_if<PermuteAttrs>()) return connected(pairs_of(*p), n);
  const auto* a = i.attributes.get_if<CollectiveAttrs>();
  if (a == nullptr) return all_in_one(n);  // the exit of a manual region
  bool of_partitions = a->use_global_device_ids || i.opcode == Opcode::kAllToAll ||
                       i.opcode == Opcode::kCollectiveBroadcast ||
                       i.opcode == Opcode::kRaggedAllToAll;
  if (a->channel_id == 0) return each_alone(n);
  if (!of_partitions) return all_in_one(n);  // one replica, all partitions
  if (a->groups == nullptr || a->groups->num_groups == 0) return all_in_one(n);
  Groups groups = expand(*a->groups, n);
  std::vector<bool> seen(n);
  for (const auto& g : groups) {
    for (int64_t d : g) {
      if (d < 0 || d >= n) throw Error("replica_groups name a device that does not exist");
      seen[d] = true;
    }
  }
  for (int64_t d = 0; d < n; ++d) {
    if (!seen[d]) groups.push_back({d});
  }
  return groups;
}

class MemoryCommunicator : public Communicator {
 public:
  MemoryCommunicator(const Program& program, int64_t n, bool wide)
      : program_(program), n_(n), wide_(wide) {}

  std::vector<Delivery> contribute(Contribution c) override {
    std::vector<Contribution> complete;
    const std::vector<int64_t>* members = nullptr;
    const Instr& i = *c.instr;
    {
      std::lock_guard lock(mutex_);
      const Meeting& m = meeting(i);
      size_t group = m.group_of_device[c.device];
      members = &m.groups[group];
      Key key{&i, group, c.occurrence};
      std::vector<Contribution>& here = waiting_[key];
      here.push_back(std::move(c));
      if (here.size() < members->size()) return {};
      complete = std::move(here);
      waiting_.erase(key);
    }
    std::sort(complete.begin(), complete.end(), [&](const Contribution& a, const Contribution& b) {
      return place(*members, a.device) < place(*members, b.device);
    });
    std::vector<Value> results = exchange(program_, i, *members, std::move(complete), wide_);
    std::vector<Delivery> out;
    for (size_t k = 0; k < results.size(); ++k)
      out.push_back({(*members)[k], std::move(results[k])});
    return out;
  }

  std::vector<const Instr*> waiting() const override {
    std::vector<const Instr*> out;
    for (const auto& [key, c] : waiting_) out.push_back(key.instr);
    std::sort(out.begin(), out.end(), [](const Instr* a, const Instr* b) { return a->id < b->id; });
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

 private:
  struct Key {
    const Instr* instr;
    size_t group;
    int64_t occurrence;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.instr, k.group, k.occurrence);
    }
  };
  struct Meeting {
    Groups groups;
    std::vector<size_t> group_of_device;
  };

  static int64_t place(const std::vector<int64_t>& members, int64_t device) {
    return std::find(members.begin(), members.end(), device) - members.begin();
  }

  const Meeting& meeting(const Instr& i) {
    std::unique_ptr<Meeting>& m = meetings_[&i];
    if (m == nullptr) {
      m = std::make_unique<Meeting>();
      m->groups = groups_of(i, n_);
      m->group_of_device.resize(n_);
      for (size_t g = 0; g < m->groups.size(); ++g) {
        for (int64_t d : m->groups[g]) m->group_of_device[d] = g;
      }
    }
    return *m;
  }

  const Program& program_;
  int64_t n_;
  bool wide_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<const Instr*, std::unique_ptr<Meeting>> meetings_;
  absl::flat_hash_map<Key, std::vector<Contribution>> waiting_;
};

}  // namespace

std::unique_ptr<Communicator> make_memory_communicator(const Program& program, int64_t num_devices,
                                                       bool wide) {
  return std::make_unique<MemoryCommunicator>(program, num_devices, wide);
}

}  // namespace gspmd
