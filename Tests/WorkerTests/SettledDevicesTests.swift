import AMQP
import DeviceRegistry
import Testing
import Wire

@testable import Delivery

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

  @Test("are ignored if a record's counts don't match its devices")
  func earlierBuild() {
    var bytes: [UInt8] = []
    for device in 1...3 { bytes.appendBigEndian(Int64(device)) }
    #expect(SettledDevices(PageRecord(sent: 2, failed: 1, settled: bytes)) == SettledDevices())
    #expect(SettledDevices(PageRecord(sent: 9, failed: 0, settled: bytes)) == SettledDevices())
    #expect(SettledDevices(PageRecord(sent: 3, failed: 0, settled: bytes)).sent == 3)
  }

  @Test("count once if their page is put off before it is sent and begins again")
  func putOffAndBegunAgain() {
    var random = RandomSource(seed: 1)
    var page = PageTicket(campaign: [1], number: 0, after: 0, upTo: .max, deadline: 0, using: &random)
    page.pending = (1...7).map { .init(id: $0, salt: 0) }
    page.sent = 10
    let record = settled(reached: [1, 9], failed: [2, 3, 4]).record
    var missing: [Int] = []
    for _ in 0..<2 {
      // Three of the remaining devices are no longer registered.
      var work = AudienceWork(.all)
      missing.append(work.begin(&page, AudiencePage(devices: DeviceRows(), next: 0, isLast: true), record).count)
      #expect(page.sent == 11 && page.failed == 6 && page.pending == [])
    }
    #expect(missing == [3, 0])
  }

  @Test("count once, and a reached one stays reached")
  func once() {
    let devices = settled(reached: [1, 1, 2], failed: [2, 3])
    #expect(devices.sent == 2 && devices.failed == 1)
  }
}
