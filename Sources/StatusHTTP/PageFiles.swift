/// A page with its scripts and styles, which contain no data: docs/decisions/0044-console.md.
package struct PageFiles: Sendable {
  private let files: [String: [UInt8]]

  /// - Parameter files: by name; empty for the page itself. The files that all pages share are added.
  package init(_ files: [String: [UInt8]]) {
    let shared = [
      "console.css": PackageResources.console_css, "dom.js": PackageResources.dom_js, "icon.svg": PackageResources.icon_svg,
      "parts.js": PackageResources.parts_js,
    ]
    self.files = shared.merging(files) { $1 }
  }

  private static let types = ["css": "text/css", "js": "text/javascript", "md": "text/markdown", "svg": "image/svg+xml"]
  private static let headers = [
    "Content-Security-Policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
      + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
  ]

  /// - Returns: nil if there is no such file.
  package func answer(_ name: String) -> HTTPAnswer? {
    let type = Self.types[name.split(separator: ".").last.map(String.init) ?? ""] ?? "text/html"
    return files[name].map { HTTPAnswer(status: 200, contentType: type + "; charset=utf-8", headers: Self.headers, body: $0) }
  }
}
