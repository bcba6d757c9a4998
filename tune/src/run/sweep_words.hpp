#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/errors.hpp>
#include <troupe/tune/detail/search.hpp>
#include <troupe/tune/detail/sweep_keys.hpp>

namespace troupe::tune::detail {

/// What errors may quote of the plan without quotes: paths, and values of fields.
inline std::vector<std::string> texts_given(const Plan& plan) {
  std::vector<std::string> given;
  for (const std::filesystem::path& path : {std::filesystem::path(plan.sweep_file), plan.storage,
                                            std::filesystem::path(plan.resume_folder)}) {
    if (path.empty()) continue;
    given.push_back(path.string());
    given.push_back(std::filesystem::absolute(path).string());
    given.push_back(std::filesystem::absolute(path).lexically_normal().string());
  }
  for (const auto& dimension : plan.space) {
    for (const auto& value : dimension.domain.values()) {
      if (auto text = to_string(value); text.find('.') != std::string::npos)
        given.push_back(std::move(text));
    }
  }
  return given;
}

/// What is said of a plan's options, in the words of who wrote them.
inline std::string in_words_of(const Plan& plan, const std::string& text) {
  return plan.sweep_file.empty() ? text : with_sweep_keys(text, texts_given(plan));
}

/// Returns what `body` does. What that throws about a sweep's options names the keys of its file.
template <class Body>
auto with_words_of(const Plan& plan, Body body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::invalid_argument& refused) {
    if (plan.sweep_file.empty()) throw;
    throw std::invalid_argument(in_words_of(plan, refused.what()));
  } catch (const std::runtime_error& refused) {
    if (plan.sweep_file.empty()) throw;
    throw std::runtime_error(in_words_of(plan, refused.what()));
  }
}

}  // namespace troupe::tune::detail
