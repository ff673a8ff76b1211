import StatusHTTP

/// The console's page with its scripts and styles: docs/decisions/0044-console.md. They contain no data.
enum ConsoleFiles {
  private static let script = "text/javascript; charset=utf-8"
  private static let files: [String: (type: String, body: [UInt8])] = [
    "": ("text/html; charset=utf-8", PackageResources.console_html),
    "console.css": ("text/css; charset=utf-8", PackageResources.console_css),
    "console.js": (script, PackageResources.console_js),
    "dom.js": (script, PackageResources.dom_js),
    "letters.js": (script, PackageResources.letters_js),
    "pages.js": (script, PackageResources.pages_js),
    "parts.js": (script, PackageResources.parts_js),
    "runbook.md": ("text/markdown; charset=utf-8", PackageResources.runbook_md),
    "search.js": (script, PackageResources.search_js),
    "testsend.js": (script, PackageResources.testsend_js),
  ]

  private static let headers = [
    "Content-Security-Policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
      + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
  ]

  /// - Parameter name: empty for the page.
  /// - Returns: nil if there is no such file.
  static func answer(_ name: String) -> HTTPAnswer? {
    files[name].map { HTTPAnswer(status: 200, contentType: $0.type, headers: headers, body: $0.body) }
  }
}
