import Foundation
import PushCore
import Testing

@Suite struct RequestDocumentationTests {
  @Test("docs/send/request.md has every name that a request may have, and push errors have their public spelling")
  func names() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
    let text = try String(contentsOf: root.appending(path: "docs/send/request.md"), encoding: .utf8)
    let names =
      RequestField.allCases.map(\.wireName) + EnvelopeField.allCases.map(\.wireName) + MessageField.allCases.map(\.wireName)
      + NotificationKey.allCases.map(\.wireName) + AndroidKey.allCases.map(\.wireName)
      + AndroidNotificationKey.allCases.map(\.wireName) + APNsKey.allCases.map(\.wireName)
      + APNsHeader.allCases.map(\.wireName) + WebpushKey.allCases.map(\.wireName) + APSKey.allCases.map(\.wireName)
      + APSAlertKey.allCases.map(\.wireName) + RemoteNotificationKey.allCases.map(\.wireName)
    for name in names { #expect(text.contains("`\(name)`"), "\(name)") }
  }
}
