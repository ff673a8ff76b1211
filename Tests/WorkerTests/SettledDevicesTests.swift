import DeviceRegistry
import Testing

@testable import Worker

@Suite("The settled devices of a page")
struct SettledDevicesTests {
  private func settled(reached: [Int64], failed: [Int64]) -> SettledDevices {
    var devices = SettledDevices()
    for device in reached { devices.note(device, isReached: true) }
    for device in failed { devices.note(device, isReached: false) }
    return devices
  }

  @Test("are read from their record as they were written")
  func record() {
    let devices = settled(reached: [1, 300, .max], failed: [0, 2, 70_000])
    #expect(SettledDevices(devices.record) == devices)
    #expect(devices.record.sent == 3 && devices.record.failed == 3)
    #expect(SettledDevices(SettledDevices().record) == SettledDevices())
    #expect(SettledDevices(nil) == SettledDevices())
  }

  @Test("of a record that counts others than it names are none")
  func earlierBuild() {
    var bytes: [UInt8] = []
    for device in 1...3 { bytes.append(number: Int64(device)) }
    #expect(SettledDevices(PageRecord(sent: 2, failed: 1, settled: bytes)) == SettledDevices())
    #expect(SettledDevices(PageRecord(sent: 9, failed: 0, settled: bytes)) == SettledDevices())
    #expect(SettledDevices(PageRecord(sent: 3, failed: 0, settled: bytes)).sent == 3)
  }

  @Test("count once, and one that was reached stays so")
  func once() {
    let devices = settled(reached: [1, 1, 2], failed: [2, 3])
    #expect(devices.sent == 2 && devices.failed == 1)
  }
}
