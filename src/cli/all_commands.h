// All commands, in the order of the help.
#pragma once

#include "cli/commands.h"

namespace xsched::cli {

inline void AddCommands(CLI::App& app) {
  for (auto* add : {AddRun, AddTop, AddList, AddHint, AddPolicy, AddTenants, AddCdi, AddConfig, AddDoctor,
                    AddDemo, AddPlan, AddRecord, AddTrace, AddExplain, AddSimulate, AddCalibrate}) {
    add(app);
  }
}

}  // namespace xsched::cli
