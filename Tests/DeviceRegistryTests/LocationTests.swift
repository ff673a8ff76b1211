import Testing

@testable import DeviceRegistry

@Suite("Locations of a registry")
struct LocationTests {
  @Test(
    "Locations are accepted in the forms of the configuration",
    arguments: [
      ("sqlite:registry.db", RegistryLocation.sqlite(path: "registry.db")),
      ("sqlite:/var/lib/r.db", .sqlite(path: "/var/lib/r.db")),
      ("sqlite:///var/lib/r.db", .sqlite(path: "/var/lib/r.db")),
      ("postgresql://u:p@db/push?sslmode=require", .postgres("postgresql://u:p@db/push?sslmode=require")),
      ("postgres://db/push", .postgres("postgres://db/push")),
      ("postgresql://u:p%40q@db:1,db2:2/my%40push", .postgres("postgresql://u:p%40q@db:1,db2:2/my%40push")),
    ])
  func reads(_ example: (String, RegistryLocation)) throws {
    #expect(try RegistryLocation(parsing: example.0) == example.1)
  }

  @Test(
    "Other locations are refused",
    arguments: ["", "registry.db", "sqlite:", "sqlite://host/r.db", "mysql://db/push", "sqlite::memory:"])
  func refuses(_ text: String) {
    #expect(throws: RegistryError.self) { try RegistryLocation(parsing: text) }
  }

  @Test("A description holds no user, password or parameter")
  func describes() throws {
    let location = try RegistryLocation(parsing: "postgresql://user:secret@db:5433/push?password=secret")
    #expect(location.description == "postgresql://db:5433/push")
    #expect(try RegistryLocation(parsing: "postgresql:///push?host=/tmp").description == "postgresql:///push")
    #expect(try RegistryLocation(parsing: "postgresql://").description == "postgresql://")
  }

  @Test(
    "A password that isn't percent-encoded is detected, and never shown",
    arguments: [
      "postgresql://u:s3%cret@127.0.0.1:1/db", "postgresql://u:s3/cret@127.0.0.1:1/db", "postgresql://u:s3c@ret@127.0.0.1:1/db",
      "postgresql://127.0.0.1:1/db?password=s3%cret", "postgresql://u:s3cret@127.0.0.1:s3cret/db",
      "postgresql://127.0.0.1/db?s3cret=1", "postgresql://u:s3#cret?@127.0.0.1/db", "postgresql://u:s3[cret@127.0.0.1/db",
    ])
  func secrets(_ text: String) {
    do {
      let store = try openRegistry(try RegistryLocation(parsing: text))
      Issue.record("opened \(type(of: store))")
    } catch {
      for part in ["s3", "cret", "ret@"] { #expect(!"\(error)".replacing("secret", with: "").contains(part), "\(error)") }
    }
  }

  @Test("A host without an address is unreachable, under any name")
  func unknownHost() {
    #expect {
      try openRegistry(try RegistryLocation(parsing: "postgresql://nohost.invalid/db"))
    } throws: {
      if case .unavailable(.down, _)? = $0 as? RegistryError { true } else { false }
    }
  }
}
