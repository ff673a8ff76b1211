import DeviceRegistry

enum DevicesExport {
  static func run(_ options: Options) throws {
    let format = try options.choice("format", of: BulkFormat.allCases.map(\.rawValue)).flatMap(BulkFormat.init(rawValue:))
    if options.asJSON, format == .csv { throw CommandFailure(.usage, "--json and --format csv exclude each other") }
    let session = try RegistrySession(options, isReading: true, store: .bulk)
    let app = try session.configuration.givenApp(options)
    let export = BulkExport(from: session.store, format: format ?? .ndjson, app: app, withTimes: options.has("times"))
    let interruption = try Interruption()
    while !interruption.hasCome, let bytes = try export.next() { Terminal.write(bytes) }
    guard !interruption.hasCome else {
      throw CommandFailure(
        .interrupted,
        "interrupted: \(export.exported) exported; the output ends with a whole line, export again for the rest")
    }
    Terminal.say("pushfleet: \(export.exported) exported")
  }
}
