import Foundation
import TestSupport
import Testing

/// docs/openapi.yaml: the answers that each path may give.
struct DoorDescription: Sendable {
  struct Operation: Sendable {
    let method: String
    /// With braces.
    let path: String
    let isOpen: Bool
    let hasBody: Bool
    /// Members of its body.
    let fields: [String]
    let statuses: Set<Int>
  }

  let operations: [Operation]
  /// The statuses that every path may give.
  let everywhere: Set<Int>

  static let shared = Result { try DoorDescription() }

  private static let script = """
    import json, re, sys, yaml
    document = yaml.safe_load(open(sys.argv[1]))
    def check(value, place):
        # A comma in a text without quotes ends it, and makes a name of what follows.
        if value is None: sys.exit(f"{place}: nothing stands there")
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
        for name, item in items: check(item, f"{place}/{name}")
    check(document, "")
    print(json.dumps({"everywhere": list(document["x-everywhere"])}))
    for path, item in document["paths"].items():
        for method, entry in item.items():
            if method == "parameters": continue
            known = [x if "in" in x else document["components"]["parameters"][x["$ref"].split("/")[-1]]
                for x in item.get("parameters", []) + entry.get("parameters", [])]
            if {x["name"] for x in known if x["in"] == "path"} != set(re.findall(r"{(.+?)}", path)): sys.exit(f"{path}: its parameters")
            body = entry.get("requestBody", {})
            schema = body.get("content", {}).get("application/json", {}).get("schema", {})
            print(json.dumps({"path": path, "method": method.upper(), "open": entry.get("security") == [], "body": bool(body),
                "fields": list(schema.get("properties", {})), "statuses": list(entry["responses"])}))
    """

  private init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let output = FileManager.default.temporaryDirectory.appendingPathComponent("description-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: output) }
    let child = try ChildProcess(
      ["/usr/bin/python3", "-c", Self.script, root.appendingPathComponent("docs/openapi.yaml").path],
      environment: ["PATH": "/usr/bin:/bin"], output: output.path)
    let isRead = child.wait() == 0
    let text = try String(contentsOf: output, encoding: .utf8)
    guard isRead else { throw Broken("docs/openapi.yaml: \(text)") }
    func numbers(_ value: Any?) -> Set<Int> { Set((value as? [String] ?? []).compactMap { Int($0) }) }
    let lines = Site.objects(text)
    everywhere = numbers(lines.first?["everywhere"])
    operations = lines.dropFirst().map { line in
      Operation(
        method: line["method"] as? String ?? "", path: line["path"] as? String ?? "", isOpen: line["open"] as? Bool ?? false,
        hasBody: line["body"] as? Bool ?? false, fields: line["fields"] as? [String] ?? [],
        statuses: numbers(line["statuses"]))
    }
  }

  /// Whether the description has this answer; true for what it doesn't describe.
  func has(_ status: Int, _ method: String, _ target: String) -> Bool {
    let path = target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
    let described = operations.filter { $0.method == method && Self.isPath(path, of: $0.path) }
    // Literal segments take precedence over segments in braces.
    guard let operation = described.min(by: { $0.path.count { $0 == "{" } < $1.path.count { $0 == "{" } }) else { return true }
    return operation.statuses.contains(status) || everywhere.contains(status)
  }

  private static func isPath(_ path: [Substring], of template: String) -> Bool {
    let parts = template.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count == path.count && zip(parts, path).allSatisfy { $0.hasPrefix("{") ? !$1.isEmpty : $0 == $1 }
  }
}
