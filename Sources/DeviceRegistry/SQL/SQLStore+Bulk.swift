import PushCore

extension SQLStore: DeviceStore {
  func load(_ registrations: [Registration], now: Int64) throws(RegistryError) -> [ChangeAnswer] {
    try Session.load(registrations, into: self, now: now)
  }
}

extension SQLSession {
  static func load(
    _ registrations: [Registration], into store: SQLStore<Self>, now: Int64
  ) throws(RegistryError) -> [ChangeAnswer] {
    try store.apply(registrations.map { .register($0) }, now: now)
  }

  static func mark(_ marks: [DeviceMark], in store: SQLStore<Self>, now: Int64) throws(RegistryError) -> [MarkOutcome] {
    try store.markEach(marks, now)
  }
}
