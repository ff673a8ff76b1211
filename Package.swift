// swift-tools-version: 6.2
import PackageDescription

/// Release builds use a profile of pushes, which `dev/profile` records: docs/decisions/0047. Its name has a hash of its content, so that
/// a new profile compiles every module again.
let profile =
  Context.environment["PUSHFLEET_RECORD_PROFILE"] == nil
  ? "-ir-profile-use=\(Context.packageDirectory)/Sources/Profile/pushes-9f2a9d1d.profdata" : "-ir-profile-generate"
/// Exclusive access is checked at run time in debug builds, which every test runs, and not in release builds: docs/decisions/0006.
/// One option makes names in the profile independent of the build's folder. The last ones give each function a section, which
/// takes a single thread for each module.
let released = SwiftSetting.unsafeFlags(
  [
    "-enforce-exclusivity=unchecked", "-Xfrontend", profile, "-Xllvm", "-static-func-full-module-prefix=false", "-Xfrontend",
    "-function-sections", "-num-threads", "1",
  ], .when(configuration: .release))
/// Pure modules and machines: no unsafe construct outside a module's `C/` folder's `unsafe` markers, no warning tolerated.
let strict: [SwiftSetting] = [.strictMemorySafety(), .treatAllWarnings(as: .error), released]
/// Modules that own C handles: the unsafe code stays in their `C/` folder, `dev/check-imports` holds that.
let door: [SwiftSetting] = [.treatAllWarnings(as: .error), released]

/// In the place of the C library's malloc (docs/decisions/0007-hot-path.md), and out of the way of a sanitizer's.
let allocator: [LinkerSetting] = Context.environment["PUSHFLEET_SANITIZE"] == nil ? [.linkedLibrary("jemalloc")] : []

/// Puts the functions that run next to each other, so that fewer pages of the program are in memory: docs/decisions/0047.
/// `dev/profile` records their names, too.
let ordered: [LinkerSetting] = [
  .unsafeFlags(
    ["-use-ld=lld"]
      + [
        "--symbol-ordering-file=\(Context.packageDirectory)/Sources/Profile/functions-ae7878da.txt",
        "--no-warn-symbol-ordering", "-z", "pack-relative-relocs",
      ].flatMap { ["-Xlinker", $0] }, .when(configuration: .release))
]

/// Said by `pushfleet --version`: deploy/package, the image and `deploy/test` name it.
let commit: [CSetting] = Context.environment["PUSHFLEET_COMMIT"].map { [.define("PUSHFLEET_COMMIT", to: "\"\($0)\"")] } ?? []

func library(_ name: String, pkgConfig: String, apt: String) -> Target {
  .systemLibrary(name: name, path: "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// The promises that are fuzzed: a test that replays Tests/Corpora or, for `dev/fuzz`, a program that libFuzzer drives.
let fuzz: Target = {
  let dependencies: [Target.Dependency] = [
    "PushCore", "Wire", "HTTP2", "AMQP", "Reactor", "DeviceRegistry", "Providers", "StatusHTTP", "Logging", "Settings",
    "Delivery", "Gateway", "TestSupport",
  ]
  guard Context.environment["PUSHFLEET_FUZZ"] != nil else {
    return .testTarget(name: "FuzzTests", dependencies: dependencies, exclude: ["LibFuzzer.swift"])
  }
  return .executableTarget(
    name: "fuzz", dependencies: dependencies, path: "Tests/FuzzTests", exclude: ["CorpusTests.swift"],
    swiftSettings: [.unsafeFlags(["-parse-as-library"])])
}()

let package = Package(
  name: "pushfleet",
  products: [
    .executable(name: "pushfleet", targets: ["pushfleet"]), .executable(name: "fleetsim", targets: ["fleetsim"]),
  ],
  targets: [
    .systemLibrary(name: "CBytes", path: "Sources/C/CBytes"),
    .systemLibrary(name: "CLinux", path: "Sources/C/CLinux"),
    .target(name: "CBuild", path: "Sources/C/CBuild", cSettings: commit),
    library("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev"),
    library("CNGHTTP2", pkgConfig: "libnghttp2", apt: "libnghttp2-dev"),
    library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    library("CPostgres", pkgConfig: "libpq", apt: "libpq-dev"),
    library("CMicroHTTPD", pkgConfig: "libmicrohttpd", apt: "libmicrohttpd-dev"),

    .target(name: "PushCore", dependencies: ["Wire", "CBytes", "COpenSSL"], swiftSettings: strict),
    .target(name: "Wire", swiftSettings: strict),
    .target(name: "HTTP2", dependencies: ["Wire", "CNGHTTP2"], swiftSettings: door),
    .target(name: "AMQP", dependencies: ["Wire"], swiftSettings: door),
    .target(name: "TLS", dependencies: ["Wire", "COpenSSL"], swiftSettings: door),
    .target(name: "Reactor", dependencies: ["Wire", "TLS", "CLinux"], swiftSettings: door),
    .target(name: "Logging", dependencies: ["PushCore", "Wire", "Reactor"], swiftSettings: strict),
    .target(
      name: "DeviceRegistry", dependencies: ["PushCore", "Wire", "Reactor", "Logging", "CSQLite", "CPostgres"],
      swiftSettings: door),
    .target(name: "Providers", dependencies: ["PushCore", "Wire", "HTTP2", "TLS", "Reactor"], swiftSettings: strict),
    .target(
      name: "StatusHTTP", dependencies: ["Wire", "Reactor", "CMicroHTTPD"],
      resources: ["console.css", "dom.js", "icon.svg", "parts.js"].map { .embedInCode("Pages/\($0)") },
      swiftSettings: door),
    .target(
      name: "Broker", dependencies: ["PushCore", "Wire", "AMQP", "TLS", "Reactor", "DeviceRegistry", "Logging"],
      swiftSettings: strict),
    .target(
      name: "Settings",
      dependencies: ["PushCore", "AMQP", "TLS", "Reactor", "DeviceRegistry", "Providers", "Logging", "Broker"],
      swiftSettings: strict),
    .target(
      name: "Delivery",
      dependencies: [
        "PushCore", "Wire", "AMQP", "TLS", "Reactor", "DeviceRegistry", "Providers", "Logging", "Broker", "Settings",
      ],
      swiftSettings: strict),
    .target(
      name: "Worker",
      dependencies: [
        "PushCore", "Wire", "AMQP", "Reactor", "DeviceRegistry", "Providers", "StatusHTTP", "Logging", "Broker",
        "Settings", "Delivery",
      ],
      resources: [.embedInCode("Telemetry/worker.html"), .embedInCode("Telemetry/worker.js")],
      swiftSettings: strict),
    .target(
      name: "Gateway",
      dependencies: [
        "PushCore", "Wire", "AMQP", "TLS", "Reactor", "DeviceRegistry", "StatusHTTP", "Logging", "Broker", "Settings",
      ],
      resources: ["console.html", "console.js", "letters.js", "pages.js", "runbook.md", "search.js", "testsend.js"]
        .map { .embedInCode("Console/\($0)") },
      swiftSettings: strict),
    .target(
      name: "Webhooks",
      dependencies: [
        "PushCore", "Wire", "AMQP", "Reactor", "DeviceRegistry", "Providers", "StatusHTTP", "Logging", "Broker", "Settings",
      ],
      swiftSettings: strict),
    .target(name: "Simulator", dependencies: ["PushCore", "Wire", "HTTP2", "TLS", "Reactor"], swiftSettings: strict),
    .executableTarget(
      name: "pushfleet",
      dependencies: [
        "CBuild", "PushCore", "AMQP", "TLS", "Reactor", "DeviceRegistry", "Broker", "Settings", "Delivery", "Worker",
        "Gateway", "Webhooks", "Simulator",
      ],
      swiftSettings: strict,
      linkerSettings: allocator + ordered),

    .target(name: "MachineDriver", dependencies: ["Wire"], path: "Tests/MachineDriver", swiftSettings: strict),
    .target(name: "BrokerModel", dependencies: ["Wire", "AMQP"], path: "Tests/BrokerModel", swiftSettings: strict),
    .target(
      name: "Simulation",
      dependencies: [
        "PushCore", "Wire", "HTTP2", "AMQP", "BrokerModel", "TLS", "Reactor", "DeviceRegistry", "Providers",
        "Logging", "Broker", "Settings", "Worker", "Simulator", "MachineDriver",
      ], path: "Tests/Simulation", swiftSettings: strict),
    .executableTarget(
      name: "fleetsim", dependencies: ["Simulation"], path: "Tests/fleetsim", swiftSettings: strict, linkerSettings: allocator),
    .executableTarget(
      name: "Benchmarks", dependencies: ["PushCore"], path: "Tests/Benchmarks", swiftSettings: strict,
      linkerSettings: allocator),

    .target(
      name: "TestSupport", dependencies: ["MachineDriver", "Wire", "TLS", "Reactor", "Simulator", "CLinux"],
      path: "Tests/TestSupport", swiftSettings: door),
    .testTarget(name: "PushCoreTests", dependencies: ["PushCore", "TestSupport"]),
    .testTarget(name: "HTTP2Tests", dependencies: ["HTTP2", "Reactor", "TestSupport"]),
    .testTarget(name: "AMQPTests", dependencies: ["AMQP", "BrokerModel", "Reactor", "Broker", "TestSupport"]),
    .testTarget(name: "ReactorTests", dependencies: ["PushCore", "TLS", "Reactor", "TestSupport"]),
    .testTarget(name: "DeviceRegistryTests", dependencies: ["DeviceRegistry", "Reactor", "TestSupport"]),
    .testTarget(name: "ProvidersTests", dependencies: ["Providers", "Simulator", "TestSupport"]),
    .testTarget(name: "SimulationTests", dependencies: ["Simulation"]),
    .testTarget(name: "SimulatorTests", dependencies: ["Simulator", "TestSupport"]),
    .testTarget(
      name: "WorkerTests",
      dependencies: [
        "Logging", "Broker", "Settings", "Delivery", "Worker", "Gateway", "Webhooks", "StatusHTTP", "AMQP", "PushCore",
        "Reactor", "DeviceRegistry", "TestSupport",
      ],
      exclude: ["Support"]),
    .testTarget(
      name: "GatewayTests",
      dependencies: [
        "Gateway", "Broker", "Settings", "StatusHTTP", "AMQP", "PushCore", "Reactor", "DeviceRegistry", "TestSupport",
      ]),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "PushCore", "AMQP", "DeviceRegistry", "StatusHTTP", "Broker", "Settings", "Delivery", "TestSupport", "pushfleet",
      ]),
    .testTarget(
      name: "SchemaTests",
      dependencies: [
        "PushCore", "AMQP", "DeviceRegistry", "Reactor", "Logging", "Broker", "Settings", "Delivery", "Worker",
        "TestSupport", "pushfleet",
      ],
      exclude: ["Support"]),
    .testTarget(
      name: "EndToEndTests", dependencies: ["AMQP", "Settings", "Delivery", "TestSupport", "pushfleet"], exclude: ["Support"]),
    fuzz,
  ],
  swiftLanguageModes: [.v6]
)
