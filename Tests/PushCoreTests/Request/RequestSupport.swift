import Foundation
import PushCore
import Testing

/// The six requests of the source documents, by file name.
func requestFixtures() throws -> [(name: String, body: [UInt8])] {
  let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(
      path: "Fixtures/requests")
  let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
  return try files.filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }.map {
    ($0.lastPathComponent, Array(try Data(contentsOf: $0)))
  }
}

/// 64 digits: an APNs token by its form.
let apnsToken = String(repeating: "0a", count: 32)

func parse(_ body: String) -> Result<SendRequest, Rejection> { SendRequest.parse(Array(body.utf8)) }

/// A request to an APNs token with more members: `"priority": "high"`.
func request(_ members: String) -> Result<SendRequest, Rejection> {
  parse("{\"to\": \"\(apnsToken)\"\(members.isEmpty ? "" : ", " + members)}")
}

/// The code that a request is refused with, nil when it is accepted.
func code(_ result: Result<SendRequest, Rejection>) -> PushError? {
  if case .failure(let rejection) = result { return rejection.code }
  return nil
}

func reason(_ result: Result<SendRequest, Rejection>) -> String {
  if case .failure(let rejection) = result { return rejection.reason }
  return ""
}
