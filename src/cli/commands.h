// The commands. Each is a file of its own, and adds itself to the program.
#pragma once

#include <CLI/CLI.hpp>

namespace xsched::cli {

void AddRun(CLI::App& app);
void AddTop(CLI::App& app);
void AddList(CLI::App& app);
void AddHint(CLI::App& app);
void AddPolicy(CLI::App& app);
void AddTenants(CLI::App& app);
void AddCdi(CLI::App& app);
void AddConfig(CLI::App& app);
void AddDoctor(CLI::App& app);
void AddDemo(CLI::App& app);
void AddPlan(CLI::App& app);
void AddRecord(CLI::App& app);
void AddTrace(CLI::App& app);
void AddExplain(CLI::App& app);
void AddSimulate(CLI::App& app);
void AddCalibrate(CLI::App& app);

}  // namespace xsched::cli
