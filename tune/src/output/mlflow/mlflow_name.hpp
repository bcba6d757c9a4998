#pragma once

#include <string>
#include <string_view>

namespace troupe::tune {

/// The key by which MLflow has a metric or a parameter of this name. Names that differ have keys
/// that differ, and the same name has the same key in each run.
///
/// MLflow takes letters and digits of ASCII and "_-./: " on all its versions but the oldest, in a
/// relative path of one spelling, of 250 characters at most. Each other byte XX (two digits, upper
/// case), each '/' at an end or beside another one, and the first '.' of the parts "." and ".."
/// becomes "_xXX". (Percent signs are not taken.) So does a "_" which "x" and two such digits
/// follow, for what is made of a name to be read in one way only. A longer key ends in "_h" and 16
/// digits of its SHA-256 instead.
std::string mlflow_name(std::string_view name);

}  // namespace troupe::tune
