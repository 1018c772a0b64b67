#include "lightcone/llm/ranks.h"

#include <algorithm>

#include "lightcone/distributed/sharding/strategies.h"

namespace lc::llm {

RankPart::RankPart(const std::optional<Collectives>& ranks, const Graph& whole) {
  if (!ranks || ranks->mesh().size() == 1) return;
  const Mesh& mesh = ranks->mesh();
  if (mesh.axes().size() != 1)
    throw Error("ranks", str_cat("the mesh is ", mesh,
                                 ", and a language model is divided along one axis, as in model=", mesh.size()));
  ranks->check_same("the model", whole.str());
  divided_ = std::make_shared<const Divided>(Divided{*ranks, tensor_parallel(whole, mesh.axes()[0].name, mesh.size())});
}

Compiler RankPart::compiler() const { return divided_ ? shard(divided_->ranks, divided_->specs) : Compiler(); }

const ShardSpec* RankPart::spec_of(std::string_view parameter) const {
  if (!divided_) return nullptr;
  const auto at = std::ranges::find(divided_->specs, parameter, &ShardSpec::name);
  return at == divided_->specs.end() ? nullptr : &*at;
}

int RankPart::parts(std::string_view parameter) const { return spec_of(parameter) ? divided_->ranks.mesh().size() : 1; }

StoredPart RankPart::of(const std::string& parameter, const StoredTensor& whole) const {
  const ShardSpec* s = spec_of(parameter);
  if (!s) return {whole};
  return part_of(whole, static_cast<int>(s->axes.size()) - 1, divided_->ranks.mesh().size(), divided_->ranks.rank());
}

PartOf RankPart::function() const {
  if (!divided_) return {};
  return [part = *this](const std::string& parameter, const StoredTensor& whole) { return part.of(parameter, whole); };
}

}  // namespace lc::llm
