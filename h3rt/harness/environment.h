// What a machine tells of itself, for the environment of evidence.
#pragma once

#include "h3rt/ledger/document.h"

namespace h3rt::lab {

// Class and instance of the host alone: what needs a GPU is null.
Doc HostEnvironment();

// Clocks, throttle reasons and the like by NVML, found at run time; null where it does not tell.
struct GpuState {
  Doc clock_mhz, throttle, temperature_c;
};
class Nvml {
 public:
  // The device with this PCI bus id. Without the library everything is null.
  explicit Nvml(const char* pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  GpuState State() const;
  Doc DriverVersion() const;
  Doc PowerLimitMw() const;
  Doc MigMode() const;       // 1 on, 0 off
  Doc ProcessCount() const;  // with a context on the device, this one included

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace h3rt::lab
