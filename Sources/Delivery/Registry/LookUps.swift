import DeviceRegistry

/// Looks up the registrations that requests name. All look-ups of a turn, of all applications, go together.
final class LookUps {
  var onAnswer: (([RecipientReference], Result<Resolution, RegistryError>) -> Void)?
  private let registry: RegistryClient
  private var places: [RecipientReference] = []
  private var lookUps: [LookUp] = []

  init(_ registry: RegistryClient) { self.registry = registry }

  func append(_ lookUp: LookUp, for place: RecipientReference) {
    places.append(place)
    lookUps.append(lookUp)
  }

  private static let most = 1_000

  /// Called at the end of a turn. A request's look-ups stay together, because its recipients refer to rows of one answer.
  func flush() {
    guard !places.isEmpty else { return }
    let (allPlaces, allLookUps) = (places, lookUps)
    places.removeAll(keepingCapacity: true)
    lookUps.removeAll(keepingCapacity: true)
    var start = 0
    var end = 0
    while start < allPlaces.count {
      repeat {
        let request = allPlaces[end].request
        while end < allPlaces.count, allPlaces[end].request == request { end += 1 }
      } while end < allPlaces.count && end - start < Self.most
      let batch = Array(allPlaces[start..<end])
      let lookUps = Array(allLookUps[start..<end])
      registry.call(.read { try $0.resolve(lookUps) }) { [weak self] in self?.onAnswer?(batch, $0) }
      start = end
    }
  }
}
