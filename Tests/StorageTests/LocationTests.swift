import Testing

@testable import Storage

@Suite("Where a registry is")
struct LocationTests {
  @Test(
    "Locations are read in the forms of the configuration",
    arguments: [
      ("sqlite:registry.db", RegistryLocation.sqlite(path: "registry.db")),
      ("sqlite:/var/lib/r.db", .sqlite(path: "/var/lib/r.db")),
      ("sqlite:///var/lib/r.db", .sqlite(path: "/var/lib/r.db")),
      ("postgresql://u:p@db/push?sslmode=require", .postgres("postgresql://u:p@db/push?sslmode=require")),
      ("postgres://db/push", .postgres("postgres://db/push")),
    ])
  func reads(_ example: (String, RegistryLocation)) throws {
    #expect(try RegistryLocation(parsing: example.0) == example.1)
  }

  @Test(
    "Anything else is refused",
    arguments: ["", "registry.db", "sqlite:", "sqlite://host/r.db", "mysql://db/push", "sqlite::memory:"])
  func refuses(_ text: String) {
    #expect(throws: StoreError.self) { try RegistryLocation(parsing: text) }
  }

  @Test("A description holds no user, password or parameter")
  func describes() throws {
    let location = try RegistryLocation(parsing: "postgresql://user:secret@db:5433/push?password=secret")
    #expect(location.description == "postgresql://db:5433/push")
    #expect(try RegistryLocation(parsing: "postgresql:///push?host=/tmp").description == "postgresql:///push")
    #expect(try RegistryLocation(parsing: "postgresql://").description == "postgresql://")
  }
}
