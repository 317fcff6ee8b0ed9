#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

void check_permutation(const SpellingReader& reader, size_t at, const std::vector<int64_t>& perm,
                       size_t rank) {
  if (perm.size() != rank) {
    reader.fail(at, fmt::format("a transpose of {} dimensions for a list of {}", perm.size(), rank),
                "name each dimension once, as in <=[2,4]T(1,0)");
  }
  std::vector<bool> seen(rank);
  for (int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(rank) || seen[p]) {
      reader.fail(at,
                  fmt::format("{} in a transpose of {} dimensions is out of range or stands twice",
                              p, rank),
                  "name each dimension once, as in <=[2,4]T(1,0)");
    }
    seen[p] = true;
  }
}

}  // namespace

std::vector<int64_t> read_ids(SpellingReader* reader, std::vector<size_t>* offsets) {
  std::vector<int64_t> ids;
  do {
    offsets->push_back(reader->position());
    ids.push_back(reader->integer());
  } while (reader->try_take(","));
  return ids;
}

void check_ids(const SpellingReader& reader, const std::vector<int64_t>& ids,
               const std::vector<size_t>& offsets) {
  const int64_t n = static_cast<int64_t>(ids.size());
  std::vector<bool> small(ids.size());  // the usual ids are below their number
  absl::flat_hash_set<int64_t> large;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    if (id < 0) reader.fail(offsets[i], fmt::format("device {} does not exist", id));
    const bool repeated = id < n ? small[id] : !large.insert(id).second;
    if (repeated) {
      reader.fail(offsets[i], fmt::format("device {} stands twice", id), "name each device once");
    }
    if (id < n) small[id] = true;
  }
}

IdList read_iota(SpellingReader* reader) {
  const size_t at = reader->position();
  const std::vector<int64_t> reshape = reader->integers("[", "]");
  if (reshape.empty())
    reader->fail(at, "an empty list of dimensions", "write the number of devices, as in <=[8]");
  for (int64_t size : reshape) {
    if (size < 1) {
      reader->fail(at, fmt::format("a dimension of size {} in a list of devices", size),
                   "each dimension has at least size 1");
    }
  }
  if (!checked_product(reshape)) reader->fail(at, "more than 2^63 devices");
  std::vector<int64_t> perm{0};
  const size_t perm_at = reader->position();
  if (reader->try_take("T")) {
    perm = reader->integers("(", ")");
  } else if (reshape.size() > 1) {
    reader->fail_here(
        "expected 'T('",
        "a list of several dimensions says how they are transposed, as in <=[2,4]T(1,0)");
  }
  check_permutation(*reader, perm_at, perm, reshape.size());
  return make_iota(reshape, std::vector<int>(perm.begin(), perm.end()));
}

IdList parse_iota(std::string_view text, size_t* position) {
  SpellingReader reader(text, *position);
  IdList out;
  if (reader.try_take("<=") || reader.peek('[')) {
    out = read_iota(&reader);
  } else {
    std::vector<size_t> offsets;
    out.ids = read_ids(&reader, &offsets);
    check_ids(reader, out.ids, offsets);
  }
  *position = reader.end();
  return out;
}

}  // namespace gspmd
