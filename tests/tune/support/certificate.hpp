#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace troupe::tune {

/// A key and a certificate that vouches for itself, made by the program `openssl` in this folder.
struct Certificate {
  std::filesystem::path file;  ///< PEM: the certificate, and then its key

  /// `names`: as in subjectAltName, "DNS:localhost" or "IP:127.0.0.1".
  static Certificate make(const std::filesystem::path& folder, const std::string& names) {
    const auto key = (folder / "key.pem").string(), certificate = (folder / "made.pem").string();
    const Certificate made{folder / "certificate.pem"};
    const auto command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
        "/CN=test -addext 'subjectAltName=" +
        names + "' -keyout '" + key + "' -out '" + certificate + "' 2> /dev/null && cat '" +
        certificate + "' '" + key + "' > '" + made.file.string() + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl: " + command);
    return made;
  }
};

}  // namespace troupe::tune
