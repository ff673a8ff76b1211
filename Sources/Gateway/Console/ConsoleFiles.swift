import StatusHTTP

extension PageFiles {
  static let console = PageFiles([
    "": PackageResources.console_html, "console.js": PackageResources.console_js, "letters.js": PackageResources.letters_js,
    "pages.js": PackageResources.pages_js, "runbook.md": PackageResources.runbook_md, "search.js": PackageResources.search_js,
    "testsend.js": PackageResources.testsend_js,
  ])
}
