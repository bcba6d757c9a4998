#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "store/catalog/catalog.hpp"

namespace troupe::store::test {

inline constexpr std::uint64_t kPage = kPageBytes;

/// A catalog of ten pages, for processes 1 and 2 of job 1, and what it last wanted.
struct CatalogWorld {
  explicit CatalogWorld(std::uint64_t pages = 10)
      : catalog({.cap_bytes = pages * kPage, .keep_bytes = 4 * kPage}) {
    catalog.attach(1_process, 1_job);
    catalog.attach(2_process, 1_job);
  }

  template <class T>
  std::vector<T> of(const Effects& effects) {
    catalog.check();
    std::vector<T> found;
    for (const auto& effect : effects) {
      if (const auto* one = std::get_if<T>(&effect)) found.push_back(*one);
    }
    return found;
  }
  /// Commits what it wants committed. -> all that it then wanted.
  Effects settle(Effects effects) {
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const auto* commit = std::get_if<Commit>(&effects[i]);
      if (commit == nullptr) continue;
      const auto more = catalog.committed(ObjectId(commit->object), std::nullopt);
      effects.insert(effects.end(), more.begin(), more.end());
    }
    return effects;
  }
  Effects create(ObjectId object, std::uint64_t pages, ProcessId owner = 1_process) {
    return settle(catalog.create(object.process, ++request, object, owner, pages * kPage));
  }
  void put(ObjectId object, std::uint64_t pages, ProcessId owner = 1_process) {
    REQUIRE(of<Created>(create(object, pages, owner)).size() == 1);
    catalog.seal(object.process, object, false);
  }

  Catalog catalog;
  RequestId request;
};

}  // namespace troupe::store::test
