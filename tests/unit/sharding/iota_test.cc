#include "gspmd/sharding/iota.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/sharding/brute_force.h"

namespace gspmd {
namespace {

using brute_force::factorizations;
using brute_force::Random;

TEST(Iota, NormalFormsAreEqualWhereTheListsAre) {
  for (int64_t n : {1, 2, 4, 6, 8, 12, 16, 24, 36}) {
    std::map<std::vector<int64_t>, IdList> forms;
    for (auto reshape : factorizations(n)) {
      reshape.insert(reshape.begin() + reshape.size() / 2, 1);
      std::vector<int> perm(reshape.size());
      std::iota(perm.begin(), perm.end(), 0);
      do {
        const auto ids = brute_force::ids(reshape, perm);
        const IdList iota = make_iota(reshape, perm);
        ASSERT_EQ(expand_ids(iota), ids);
        ASSERT_EQ(iota.size(), n);
        ASSERT_EQ(forms.emplace(ids, iota).first->second, iota) << print_iota(iota);
        ASSERT_EQ(as_iota(ids), iota) << print_iota(iota);
        ASSERT_EQ(is_plain(iota), std::is_sorted(ids.begin(), ids.end()));
      } while (std::next_permutation(perm.begin(), perm.end()));
    }
  }
}

// Every list of up to 6 devices: recognised exactly where some iota form gives it.
TEST(Iota, RecognisesAListExactlyWhereItHasAForm) {
  for (int64_t n = 1; n <= 6; ++n) {
    std::vector<std::vector<int64_t>> regular;
    for (const auto& reshape : factorizations(n)) {
      std::vector<int> perm(reshape.size());
      std::iota(perm.begin(), perm.end(), 0);
      do {
        regular.push_back(brute_force::ids(reshape, perm));
      } while (std::next_permutation(perm.begin(), perm.end()));
    }
    std::vector<int64_t> ids(n);
    std::iota(ids.begin(), ids.end(), 0);
    do {
      const bool is_regular = std::find(regular.begin(), regular.end(), ids) != regular.end();
      EXPECT_EQ(as_iota(ids).has_value(), is_regular) << print_iota({{}, {}, ids});
    } while (std::next_permutation(ids.begin(), ids.end()));
  }
  EXPECT_FALSE(as_iota({}));
  EXPECT_FALSE(as_iota({0, 2}));
  EXPECT_FALSE(as_iota({1, 2}));
  EXPECT_FALSE(as_iota({0, int64_t{1} << 62, 1, 2}));
}

// A piece of the places, mapped, covers the ids that stand there, in order.
TEST(Iota, MappedPiecesCoverTheSameIds) {
  Random random(3);
  int mapped = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const int64_t n = std::vector<int64_t>{4, 6, 8, 12, 24}[random.below(5)];
    const auto all = factorizations(n);
    const auto reshape = all[random.below(static_cast<int64_t>(all.size()))];
    std::vector<int> perm(reshape.size());
    std::iota(perm.begin(), perm.end(), 0);
    random.shuffle(&perm);
    const auto sizes = all[random.below(static_cast<int64_t>(all.size()))];
    const int64_t which = random.below(static_cast<int64_t>(sizes.size()));
    Piece places{1, sizes[which]};
    for (size_t k = which + 1; k < sizes.size(); ++k) places.stride *= sizes[k];

    std::vector<Piece> pieces;
    if (!map_piece(iota_digits(make_iota(reshape, perm)), places, &pieces)) {
      ++refused;
      continue;
    }
    ++mapped;
    const auto ids = brute_force::ids(reshape, perm);
    for (int64_t value = 0; value < places.size; ++value) {
      int64_t id = 0, rest = value;
      for (size_t k = pieces.size(); k-- > 0; rest /= pieces[k].size) {
        id += rest % pieces[k].size * pieces[k].stride;
      }
      ASSERT_EQ(id, ids[value * places.stride]);
    }
    for (size_t k = 0; k + 1 < pieces.size(); ++k) {
      ASSERT_NE(pieces[k].stride, pieces[k + 1].end());  // neighbours are joined
    }
  }
  EXPECT_GT(mapped, 1000);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace gspmd
