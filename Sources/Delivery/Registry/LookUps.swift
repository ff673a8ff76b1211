import DeviceRegistry

/// Looks up the registrations that requests name. All look-ups of a turn, of all applications, go together.
final class LookUps {
  var onAnswer: (([RecipientReference], Result<Resolution, RegistryError>) -> Void)?
  private let registry: RegistryClient
  private var waiting: [(place: RecipientReference, lookUp: LookUp)] = []

  init(_ registry: RegistryClient) { self.registry = registry }

  func append(_ lookUp: LookUp, for place: RecipientReference) {
    waiting.append((place, lookUp))
  }

  private static let most = 1_000

  /// Called at the end of a turn. A request's look-ups stay together, because its recipients refer to rows of one answer.
  func flush() {
    guard !waiting.isEmpty else { return }
    let asked = waiting
    waiting.removeAll(keepingCapacity: true)
    var start = 0
    var end = 0
    while start < asked.count {
      repeat {
        let request = asked[end].place.request
        while end < asked.count, asked[end].place.request == request { end += 1 }
      } while end < asked.count && end - start < Self.most
      let (places, lookUps) = (asked[start..<end].map(\.place), asked[start..<end].map(\.lookUp))
      registry.call(.read { try $0.resolve(lookUps) }) { [weak self] in self?.onAnswer?(places, $0) }
      start = end
    }
  }
}
