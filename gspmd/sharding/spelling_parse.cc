// Sharding annotations of HLO text, except the named form (named_parse.cc).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gspmd/sharding/iota.h"
#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;
using Group = ShardingSpelling::Group;

std::vector<int64_t> read_tile_dims(SpellingReader* reader) {
  const size_t at = reader->position();
  std::vector<int64_t> dims;
  reader->list("[", "]", [&] {
    const size_t dim_at = reader->position();
    dims.push_back(reader->integer());
    if (dims.back() < 1) {
      reader->fail(dim_at, fmt::format("a tile dimension of {}", dims.back()),
                   "a dimension that is not split has 1 tile");
    }
  });
  if (dims.empty()) {
    reader->fail(at, "no tile dimensions", "for a value without dimensions write {replicated}");
  }
  if (!checked_product(dims)) reader->fail(at, "more than 2^63 tiles");
  return dims;
}

std::string tile_count_hint(const std::vector<int64_t>& tile_dims, int64_t tiles, int64_t devices) {
  if (devices % tiles != 0) return "the tile dimensions multiply to the number of devices";
  return fmt::format(
      "the tile dimensions multiply to the number of devices; to keep a copy of each tile on {} "
      "devices write "
      "devices=[{},{}] with last_tile_dim_replicate",
      devices / tiles, fmt::join(tile_dims, ","), devices / tiles);
}

SubgroupType read_subgroup(SpellingReader* reader) {
  const std::pair<std::string_view, SubgroupType> kTypes[] = {
      {"replicated", SubgroupType::kReplicated},
      {"manual", SubgroupType::kManual},
      {"unreduced", SubgroupType::kUnreduced},
      {"maximal", SubgroupType::kMaximal}};
  for (auto [word, type] : kTypes) {
    if (reader->try_word(word)) return type;
  }
  reader->fail_here("expected replicated, manual, unreduced or maximal");
}

void read_subgroups(SpellingReader* reader, ShardingSpelling* s) {
  const size_t at = reader->position();
  if (reader->try_word("last_tile_dim_replicate")) {
    s->subgroups = {SubgroupType::kReplicated};
  } else if (reader->try_word("last_tile_dims")) {
    reader->take("=");
    reader->list("{", "}", [&] { s->subgroups.push_back(read_subgroup(reader)); });
    s->subgroups_spelled_as_list = true;
  }
  if (s->subgroups.size() > s->tile_dims.size()) {
    reader->fail(at,
                 fmt::format("{} last_tile_dims, but only {} tile dimensions", s->subgroups.size(),
                             s->tile_dims.size()),
                 "the tile dimensions end with one dimension for each of last_tile_dims");
  }
}

void read_tiled(SpellingReader* reader, size_t at, ShardingSpelling* s) {
  s->kind = Kind::kTiled;
  reader->take("=");
  s->tile_dims = read_tile_dims(reader);
  std::vector<size_t> id_offsets;
  if (reader->try_take("<=")) {
    s->devices = read_iota(reader);
  } else if (reader->peek_digit() || reader->peek('-')) {
    s->devices.ids = read_ids(reader, &id_offsets);
  } else {
    reader->fail_here("expected the devices",
                      "write <=[8] for devices 0 to 7 in order, or their ids");
  }
  const int64_t tiles = *checked_product(s->tile_dims);
  if (tiles != s->devices.size()) {
    reader->fail(at, fmt::format("{} tiles but {} devices", tiles, s->devices.size()),
                 tile_count_hint(s->tile_dims, tiles, s->devices.size()));
  }
  check_ids(*reader, s->devices.ids, id_offsets);
  read_subgroups(reader, s);
}

void read_kind(SpellingReader* reader, ShardingSpelling* s) {
  const size_t at = reader->position();
  if (reader->try_word("replicated")) {
    s->kind = Kind::kReplicated;
  } else if (reader->try_word("manual")) {
    s->kind = Kind::kManual;
  } else if (reader->try_word("unknown")) {
    s->kind = Kind::kUnknown;
  } else if (reader->try_word("unreduced")) {
    s->kind = Kind::kUnreduced;
  } else if (reader->try_word("maximal")) {
    s->kind = Kind::kMaximal;
    reader->take("device");
    reader->take("=");
    const size_t id_at = reader->position();
    s->device = reader->integer();
    if (s->device < 0) reader->fail(id_at, fmt::format("device {} does not exist", s->device));
  } else if (reader->try_word("devices")) {
    read_tiled(reader, at, s);
  } else if (reader->try_word("mesh")) {
    read_named(reader, MeshWord::kMesh, s);
  } else if (reader->try_word("maximal_mesh")) {
    read_named(reader, MeshWord::kMaximalMesh, s);
  } else {
    reader->fail_here(
        "expected a sharding",
        "write {replicated}, {maximal device=N}, {manual}, {unknown} or {devices=[2,4]<=[8]}");
  }
}

// shard_as, shard_like and metadata, in any order, up to the closing brace.
void read_suffixes(SpellingReader* reader, ShardingSpelling* s) {
  while (!reader->try_take("}")) {
    reader->try_take(",");
    if (reader->try_word("shard_as")) {
      s->group = Group::kShardAs;
      s->group_id = reader->integer();
    } else if (reader->try_word("shard_like")) {
      s->group = Group::kShardLike;
      s->group_id = reader->integer();
    } else if (reader->try_word("metadata")) {
      reader->take("=");
      s->metadata = reader->braces();
    } else {
      reader->fail_here("expected '}'",
                        "a sharding may end with shard_as N, shard_like N, metadata={...}");
    }
  }
}

ShardingSpelling read_single(SpellingReader* reader) {
  ShardingSpelling s;
  reader->take("{");
  read_kind(reader, &s);
  read_suffixes(reader, &s);
  use_short_form(&s);
  return s;
}

}  // namespace

ShardingSpelling parse_hlo_sharding(std::string_view text, size_t* position) {
  SpellingReader reader(text, *position);
  SpellingReader ahead = reader;
  ahead.take("{");
  ShardingSpelling s;
  if (ahead.peek('{') || ahead.peek('}')) {
    s.kind = Kind::kTuple;
    reader.list("{", "}", [&] { s.elements.push_back(read_single(&reader)); });
  } else {
    s = read_single(&reader);
  }
  *position = reader.end();
  return s;
}

}  // namespace gspmd
