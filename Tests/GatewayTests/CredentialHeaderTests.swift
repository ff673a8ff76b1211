import Testing

@testable import Gateway

@Suite("The header Authorization")
struct CredentialHeaderTests {
  @Test(
    "has the value after key= or Bearer, in any letter case and with any spaces between them",
    arguments: [
      ("key=k", "k"), ("KEY= k", "k"), ("Bearer k", "k"), ("bEARER   k", "k"), ("bearer", nil), ("Bearer  ", nil),
      ("key=", nil),
      ("Basic k", nil), ("\u{2B}ey=k", nil), ("", nil),
    ] as [(String, String?)])
  func credential(_ header: String, _ credential: String?) {
    #expect(HTTPCall.credential(in: ["authorization": Array(header.utf8)]) == credential.map { Array($0.utf8) })
  }
}
