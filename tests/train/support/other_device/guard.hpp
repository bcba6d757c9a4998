#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "support/other_device.hpp"

namespace troupe::testing {

/// What LibTorch asks of the streams of other_device(): there is one, on which operators compute
/// while they are called.
struct OtherGuard : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::HPU> {
  c10::Device exchangeDevice(c10::Device) const override { return other_device(); }
  c10::Device getDevice() const override { return other_device(); }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, other_device());
  }
};

}  // namespace troupe::testing
