import Foundation

/// The code in a document: lines of shell or unnamed blocks, and the texts in backticks.
public struct DocumentCode {
  public private(set) var lines: [String] = []
  public private(set) var spans: [String] = []

  public init(_ text: String) {
    var prose = ""
    var fence: Substring?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        fence = fence == nil ? line.dropFirst(3) : nil
      } else if let fence {
        if ["", "sh", "bash"].contains(fence) { lines.append(String(line)) }
      } else {
        if line.contains(/^(#|\/\/)? {3,}\S/) { lines.append(String(line.drop { " #/".contains($0) })) }
        prose += String(line) + "\n"
      }
    }
    spans = prose.matches(of: /`([^`]+)`/).map { String($0.1).replacing("\n", with: " ") }
  }
}
