import Foundation
import Testing

@Suite("What fuzzing has kept")
struct CorpusTests {
  static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Corpora")

  @Test("every promise is kept for every input of the corpus", arguments: FuzzTarget.allCases)
  func replay(_ target: FuzzTarget) throws {
    let files = try FileManager.default.contentsOfDirectory(
      at: Self.folder.appending(path: target.rawValue), includingPropertiesForKeys: nil)
    #expect(files.count >= 5, "\(target.rawValue) has hardly a corpus")
    for file in files {
      let bytes = [UInt8](try Data(contentsOf: file))
      do throws(Violation) { try target.run(bytes) } catch {
        Issue.record("\(file.lastPathComponent): \(error)")
      }
    }
  }

  @Test("no input at all and a single byte are inputs as well", arguments: FuzzTarget.allCases)
  func shortest(_ target: FuzzTarget) throws {
    try target.run([])
    for byte: UInt8 in 0...255 { try target.run([byte]) }
  }

  @Test("a promise that is not kept is told")
  func told() {
    #expect(throws: Violation.self) { try require(1 == 2, "one is two") }
  }
}
