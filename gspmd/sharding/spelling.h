#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gspmd/sharding/sharding.h"

namespace gspmd {

// An ordered list of ids: either written out, or iota: transpose(reshape(0..n-1, reshape), perm),
// flattened.
// `<=[8]` is reshape={8} with perm={0}.
struct IdList {
  std::vector<int64_t> reshape;
  std::vector<int> perm;
  std::vector<int64_t> ids;  // used where `reshape` is empty
  bool is_iota() const { return !reshape.empty(); }
  int64_t size() const;
  friend bool operator==(const IdList&, const IdList&) = default;
};

// A part of a named axis: "z":(2)4 has pre 2 and size 4; size 0 = the whole axis.
struct NamedAxis {
  std::string name;
  int64_t pre = 1;
  int64_t size = 0;
  friend bool operator==(const NamedAxis&, const NamedAxis&) = default;
};

struct NamedDim {
  std::vector<NamedAxis> axes;
  bool open = false;
  std::optional<int> priority;
  friend bool operator==(const NamedDim&, const NamedDim&) = default;
};

struct NamedMesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  IdList device_ids;                      // empty = iota
  std::optional<int64_t> maximal_device;  // maximal_mesh[device_id=3]
  friend bool operator==(const NamedMesh&, const NamedMesh&) = default;
};

enum class SubgroupType : uint8_t { kReplicated, kManual, kUnreduced, kMaximal };

// A sharding annotation exactly as a program spells it (formats/hlo_text "sharding"; sdy's
// attribute). Kept on the instruction so that printing gives back what was read; `MeshRefinement`
// gives it a meaning.
struct ShardingSpelling {
  enum class Kind : uint8_t {
    kReplicated,
    kMaximal,
    kManual,
    kUnknown,
    kUnreduced,
    kTiled,
    kNamed,
    kTuple
  };
  enum class Group : uint8_t { kNone, kShardAs, kShardLike };
  Kind kind = Kind::kReplicated;

  int64_t device = 0;  // kMaximal

  // kTiled: devices=[2,1,4]<=[8] last_tile_dims={...}. `tile_dims` includes the subgroup dimensions
  // at its end, one for each of `subgroups`; `last_tile_dim_replicate` reads as
  // subgroups={kReplicated}.
  std::vector<int64_t> tile_dims;
  IdList devices;
  std::vector<SubgroupType> subgroups;
  bool subgroups_spelled_as_list =
      false;  // last_tile_dims={replicated}, not last_tile_dim_replicate

  // kNamed: with its mesh written in place (HLO) or named (sdy: mesh_name = "mesh", without the @).
  std::string mesh_name;
  NamedMesh mesh;
  std::vector<NamedDim> dims;
  std::vector<NamedAxis> replicated_axes, unreduced_axes, manual_axes;
  Combiner unreduced_combiner = Combiner::kSum;
  // The whole value: `mesh[...], replicated` / `manual` / `unreduced` without dims.
  std::optional<SubgroupType> named_whole;

  Group group = Group::kNone;
  int64_t group_id = 0;
  std::string metadata;  // raw text after `metadata=`, empty if none

  std::vector<ShardingSpelling> elements;  // kTuple

  friend bool operator==(const ShardingSpelling&, const ShardingSpelling&) = default;
};

// A text that is no sharding: `offset` counts bytes from the start of the given text.
struct SpellingError {
  size_t offset = 0;
  std::string message;
  std::string hint;
};

// Reads `{...}` as after `sharding=` in HLO text (any kind, tuples too), starting at
// `text[*position]`, and moves *position past it. Checks what can be checked without a shape (tile
// counts against devices, repeated devices, unknown axes, axes used twice). Throws SpellingError.
// Iota lists are never expanded.
ShardingSpelling parse_hlo_sharding(std::string_view text, size_t* position);
// Reads `#sdy.sharding<@mesh, [{"x"}, {"y", ?}p1], replicated={"z"}>`, with or without the
// `#sdy.sharding` prefix, and
// `#sdy.sharding_per_value<[<@mesh, [...]>, ...]>` (a kTuple).
ShardingSpelling parse_sdy_sharding(std::string_view text, size_t* position);
// Reads `#sdy.mesh<["a"=2, "b"=4], device_ids=[...]>`, with or without prefix.
NamedMesh parse_sdy_mesh(std::string_view text, size_t* position);
// Reads `#sdy<manual_axes{"a", "b"}>`, or the braces alone.
std::vector<NamedAxis> parse_sdy_manual_axes(std::string_view text, size_t* position);

// What the reader takes, in XLA's normal form of spaces and commas: `{devices=[2,1,4]<=[8]
// last_tile_dim_replicate}`.
std::string print_hlo_sharding(const ShardingSpelling& s);
std::string print_sdy_sharding(const ShardingSpelling& s);
std::string print_sdy_mesh(const NamedMesh& mesh);
std::string print_sdy_manual_axes(const std::vector<NamedAxis>& axes);

// For spellings that were not read from text (protobuf, bytecode, Python): throws Error for what
// the readers refuse, and gives the form that they give: iota lists without needless dimensions,
// `{replicated}` where nothing is split.
void normalize(ShardingSpelling* s);
void normalize(NamedMesh* mesh);

// The part after `devices=[...]` or after the sizes of replica groups: `<=[8]`, `<=[4,2]T(1,0)`
// (kept in normal form), or ids, `0,2,1,3`. The arrow may be missing, as in a mesh's
// device_ids=([4,2]T(1,0)).
IdList parse_iota(std::string_view text, size_t* position);
std::string print_iota(const IdList& ids);

}  // namespace gspmd
