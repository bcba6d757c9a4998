#include "files/pending_file.hpp"

#include <system_error>

#include <fmt/format.h>

#include "files/durable.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

/// Runs `write`, whose errors get the file's name.
template <class Write>
void written(const fs::path& path, Write write) {
  try {
    write();
  } catch (const std::system_error& error) {
    not_done(fmt::format("cannot write {}", in_words(path)), error.code().message());
  }
}

}  // namespace

PendingFile::PendingFile(const fs::path& path) : final_(os::behind_links(path)) {
  std::error_code ignored;
  const auto before = fs::status(final_, ignored);
  if (fs::exists(before) && !fs::is_regular_file(before))
    not_done(fmt::format("cannot write {}", in_words(path)), "what is there is no file");
  written(final_, [&] { file_.emplace(final_); });
}

void PendingFile::write(const void* bytes, std::size_t count) {
  written(final_, [&] { file_->write(bytes, count); });
}

void PendingFile::commit() {
  written(final_, [&] {
    file_->sync();
    file_->commit();
  });
  const auto folder = final_.parent_path();
  make_durable(folder.empty() ? fs::path(".") : folder);
}

}  // namespace troupe::train
