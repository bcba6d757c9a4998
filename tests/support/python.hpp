#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace troupe::test {

/// Whether an interpreter of Python is there. If not, this prints that the test is skipped as there
/// is no `what`, which `command` installs.
inline bool has_interpreter(const std::string& interpreter, const std::string& what,
                            const std::string& command = "./run setup") {
  if (std::filesystem::exists(interpreter)) return true;
  std::cout << "skipped: there is no " << what << " here; " << command << " installs it\n";
  return false;
}

/// What a Python program prints about the files of `folder`, into which it is written; its traceback
/// where it fails.
inline std::string python(const std::filesystem::path& folder, const std::string& program,
                          const std::string& interpreter = "python3") {
  std::ofstream(folder / "judge.py") << program;
  const auto command =
      "cd '" + folder.string() + "' && timeout 60 '" + interpreter + "' judge.py 2>&1";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "no shell";
  std::array<char, 4096> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    output.append(part.data(), size);
  pclose(pipe);
  return output;
}

}  // namespace troupe::test
