/// The registry in PostgreSQL, for a fleet on several hosts. Its tables are in the schema `pushfleet`.
extension PostgresConnection {
  /// Migrates the tables to this program's version, one worker at a time. Writes nothing if they are current: a stand-by works.
  func migrate() throws(RegistryError) {
    guard try version() < Schema.version else { return }
    try transaction(.devices) { () throws(RegistryError) -> Void in
      try execute("SELECT pg_advisory_xact_lock(1885760628, 0)")
      let found = try version()
      guard found < Schema.version else { return }
      if found == 0 {
        try execute("CREATE SCHEMA IF NOT EXISTS pushfleet")
        try execute("CREATE TABLE pushfleet.schema_version (version BIGINT NOT NULL)")
        try execute("INSERT INTO pushfleet.schema_version (version) VALUES (0)")
      }
      for migration in found..<Schema.version {
        for statement in Schema.statements(of: migration, .postgres) { try execute(statement) }
      }
      try run(SQL.setVersion, [.int(Int64(Schema.version))])
    }
  }

  private func version() throws(RegistryError) -> Int {
    guard try firstInt(SQL.versionTable, []) != nil else { return 0 }
    let found = Int(try firstInt(SQL.version, []) ?? 0)
    guard found <= Schema.version else {
      throw .unusable(
        .newerSchema, "the registry has schema \(found), this program knows up to \(Schema.version): use the newer program")
    }
    return found
  }
}

extension SQL {
  static let versionTable = Statement(
    "SELECT 1 FROM information_schema.tables WHERE table_schema = 'pushfleet' AND table_name = 'schema_version'")
  static let version = Statement("SELECT max(version) FROM pushfleet.schema_version")
  static let setVersion = Statement("UPDATE pushfleet.schema_version SET version = ?1")
}
