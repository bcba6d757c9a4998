#pragma once

#include <nlohmann/json.hpp>

/// The rows of each kind, of what `troupe status --json` prints.
namespace troupe::cli {

nlohmann::json node_rows(const nlohmann::json& status);
nlohmann::json actor_rows(const nlohmann::json& status);
/// Of a status with the head's answer under "running".
nlohmann::json task_rows(const nlohmann::json& status);
nlohmann::json gang_rows(const nlohmann::json& status);
/// Of a status with the head's answer under "objects"; the largest first.
nlohmann::json object_rows(const nlohmann::json& status);
nlohmann::json store_rows(const nlohmann::json& status);
nlohmann::json job_rows(const nlohmann::json& status);

}  // namespace troupe::cli
