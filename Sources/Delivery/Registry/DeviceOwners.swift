import DeviceRegistry
import PushCore

/// Adds installation and user to the feedback of registered devices. All events of a turn are looked up together. If the
/// registry can't answer, these fields are left out.
final class DeviceOwners {
  var onCompleted: ((FeedbackEvent, RequestReference) -> Void)?
  private let registry: RegistryClient
  private var waiting: [(event: FeedbackEvent, device: Int64, request: RequestReference)] = []

  init(_ registry: RegistryClient) { self.registry = registry }

  func append(_ event: FeedbackEvent, of device: Int64, for request: RequestReference) {
    waiting.append((event, device, request))
  }

  /// Called at the end of a turn.
  func flush() {
    guard !waiting.isEmpty else { return }
    let asked = waiting
    waiting.removeAll(keepingCapacity: true)
    let devices = Set(asked.map(\.device)).sorted()
    registry.call(.read { try $0.owners(of: devices) }) { [weak self] result in
      let owners = (try? result.get()) ?? [:]
      for entry in asked {
        var event = entry.event
        event.details.installation = owners[entry.device]?.installation
        event.details.user = owners[entry.device]?.user
        self?.onCompleted?(event, entry.request)
      }
    }
  }
}
