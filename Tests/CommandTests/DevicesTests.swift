import DeviceRegistry
import Foundation
import TestSupport
import Testing

@Suite("pushfleet devices")
struct DevicesTests {
  typealias Backend = RegistrySite.Backend

  // MARK: import

  @Test(
    "imports 20,000 rows; three bad ones are told by file and line and cost only themselves", arguments: BulkFormat.allCases)
  func manyRows(format: BulkFormat) throws {
    let site = try RegistrySite()
    let bad = [7, 9_999, 20_000]
    var text = format == .csv ? "token,platform,topics\n" : ""
    for row in 1...20_000 {
      let token = bad.contains(row) ? "nonsense" : token(row)
      text += format == .csv ? "\(token),apns,news\n" : #"{"platform":"apns","token":"\#(token)","topics":["news"]}"# + "\n"
    }
    let file = try site.write(text, "devices.\(format)")
    let ended = try site.run(["devices", "import", file, "--json"])
    #expect(ended.status == 65)
    for row in bad {
      #expect(ended.errors.contains("\(file), line \(format == .csv ? row + 1 : row): InvalidRegistration: token:"))
    }
    #expect(ended.errors.contains("3 of the rows are refused") && !ended.errors.contains("nonsense"))
    let summary = try #require(ended.objects.first)
    #expect(summary["rows"] as? Int == 20_000 && summary["stored"] as? Int == 19_997 && summary["refused"] as? Int == 3)
    #expect(try site.run(["topics", "list", "--json"]).objects.first?["members"] as? Int == 19_997)
    #expect(try site.run(["devices", "export"]).lines.count == 19_997)
  }

  /// Every field, in its most awkward form.
  static let awkward = """
    {"app":"com.example.app","platform":"apns","token":"\(token(1))","installation":"i,1","environment":"sandbox","sender":"s\\"1","user":"u@x","name":"O'Neil, \\"J\\" é日","locale":"pt_BR","time_zone":"Europe/Lisbon","app_version":"1.0|2","topics":["a","b-_.~%"]}
    {"app":"com.example.app","platform":"fcm","token":"abc:DEF_-1"}
    {"app":"com.example.app","platform":"apns","token":"\(token(2))","user":"u@x","name":"O'Neil, \\"J\\" é日"}

    """

  @Test(
    "what was imported comes out of an export as it went in, in either form, and goes in again", arguments: Backend.available)
  func roundTrip(backend: Backend) throws {
    let site = try RegistrySite(backend)
    #expect(try site.run(["devices", "import", "-"], input: Array(Self.awkward.utf8)).status == 0)
    let ndjson = try site.run(["devices", "export"])
    #expect(ndjson.status == 0 && ndjson.output == Self.awkward)
    let csv = try site.run(["devices", "export", "--format", "csv"])
    #expect(csv.lines.count == 4)

    for (text, name) in [(ndjson.output, "d.ndjson"), (csv.output, "d.csv")] {
      let other = try RegistrySite(backend)
      let file = try other.write(text, name)
      #expect(try other.run(["devices", "import", file]).status == 0)
      #expect(try other.run(["devices", "export"]).output == Self.awkward)
      // Once more: nothing is doubled.
      #expect(try other.run(["devices", "import", file]).status == 0)
      #expect(try other.run(["devices", "export", "--format", "csv"]).output == csv.output)
    }
  }

  @Test("an export leaves gone devices out and may be one application's")
  func exported() throws {
    let site = try RegistrySite()
    try site.configure("registry: \"\(site.location)\",", apps: [RegistrySite.app, "b"])
    let lines = (1...3).map { #"{"app":"\#($0 == 3 ? "b" : RegistrySite.app)","platform":"apns","token":"\#(token($0))"}"# }
    try site.run(["devices", "import", "-"], input: Array(lines.joined(separator: "\n").utf8))
    #expect(try site.run(["devices", "unregister", "--app", RegistrySite.app, "--token", token(1)]).status == 0)
    #expect(try site.run(["devices", "export"]).lines.count == 2)
    #expect(try site.run(["devices", "export", "--app", RegistrySite.app]).lines.count == 1)
    #expect(try site.run(["devices", "export", "--app", "nobody"]).status == 64)
  }

  @Test(
    "CSV from a spreadsheet is understood: byte-order mark, CRLF, quotes, line breaks within them, empty lines, no last break")
  func spreadsheet() throws {
    let site = try RegistrySite()
    let text =
      "\u{FEFF}platform,\"token\",user,name,topics\r\n\r\n"
      + "apns,\(token(1)),u1,\"A, \"\"B\"\"\",a|b\r\n\"apns\",\"\(token(2))\",u2,,\"\"\r\nfcm,x:y,u3,C,a"
    let ended = try site.run(["devices", "import", try site.write(text, "d.csv")])
    #expect(ended.status == 0, "\(ended.errors)")
    let devices = try site.run(["devices", "export"]).objects
    #expect(devices.map { $0["user"] as? String } == ["u1", "u2", "u3"])
    #expect(devices.map { $0["name"] as? String } == ["A, \"B\"", nil, "C"])
    #expect(devices.map { $0["topics"] as? [String] } == [["a", "b"], nil, ["a"]])
  }

  @Test(
    "a row that can't be a device costs only itself, with the reason and its line",
    arguments: [
      ("apns,\(token(9)),u,a,b,c", "line 3: InvalidParameters: 6 fields, the header has 4"),
      ("apns,\(token(9)),,\"never closed", "line 3: InvalidParameters: a quote is never closed"),
      ("apns,\(token(9)),\"x\"y,", "line 3: InvalidParameters: text after a closing quote"),
      ("apns,\(token(9)),u,a\u{0}b", "line 3: InvalidParameters: name: holds a control character"),
      ("apns,\(token(9))\u{0},u,a", "line 3: InvalidParameters: token: holds a control character"),
      ("apns,\(token(9)),\"u\nv\",a", "line 3: InvalidParameters: user:"),
      ("apns,,u,a", "line 3: InvalidParameters: token: missing"),
      ("web,\(token(9)),u,a", "line 3: InvalidParameters: platform: expected apns, fcm or webpush"),
    ])
  func badRow(row: String, message: String) throws {
    let site = try RegistrySite()
    // A quote that is never closed would swallow what comes after it: there it is the last row.
    let isLast = row.contains("never closed")
    let text = "platform,token,user,name\napns,\(token(1)),u,a\n\(row)\n" + (isLast ? "" : "apns,\(token(2)),u,a\n")
    let ended = try site.run(["devices", "import", "-", "--json"], input: Array(text.utf8))
    #expect(ended.status == 65)
    #expect(ended.errors.contains("standard input, \(message)"), "\(ended.errors)")
    #expect(ended.objects.first?["stored"] as? Int == (isLast ? 1 : 2))
    #expect(ended.objects.first?["refused"] as? Int == 1)
  }

  @Test("a line of 10 MB, of NUL or of bytes that aren't UTF-8 is refused alone", arguments: BulkFormat.allCases)
  func monsters(format: BulkFormat) throws {
    let site = try RegistrySite()
    func row(_ number: Int, _ name: [UInt8]) -> [UInt8] {
      let text =
        format == .csv ? "apns,\(token(number)),u," : #"{"platform":"apns","token":"\#(token(number))","user":"u","name":""#
      return Array(text.utf8) + name + Array((format == .csv ? "\n" : "\"}\n").utf8)
    }
    var bytes: [UInt8] = format == .csv ? Array("platform,token,user,name\n".utf8) : []
    bytes += row(1, [0x61]) + row(2, Array(repeating: 0x61, count: 10 << 20)) + row(3, [0x61])
    bytes += row(4, [0x61, 0x00]) + row(5, [0xFF, 0xFE]) + row(6, [0x61])
    let ended = try site.run(["devices", "import", try site.write(bytes, "d.\(format)"), "--json"])
    #expect(ended.status == 65)
    let first = format == .csv ? 2 : 1
    for line in [first + 1, first + 3, first + 4] { #expect(ended.errors.contains("line \(line): "), "\(ended.errors)") }
    #expect(ended.objects.first?["rows"] as? Int == 6)
    #expect(ended.objects.first?["stored"] as? Int == 3)
  }

  @Test(
    "a file that can't be an import is refused as a whole, before anything is stored",
    arguments: [
      ("colour,token,platform\nred,1,apns\n", "line 1: header line: column 1 is not one of app, platform, token"),
      ("token\n1\n", "line 1: header line: the columns platform and token are needed"),
      ("token,platform,token\n", "line 1: header line: column token appears twice"), ("", "the file is empty"),
    ])
  func badFile(text: String, message: String) throws {
    let site = try RegistrySite()
    let ended = try site.run(["devices", "import", "-", "--format", "csv"], input: Array(text.utf8))
    #expect(ended.status == 65 && ended.errors.contains(message), "\(ended.errors)")
    #expect(try site.run(["devices", "import", "/nowhere.csv"]).status == 65)
    #expect(try site.run(["devices", "import", site.folder.path]).status == 65)
    #expect(try site.run(["devices", "import"]).status == 64)
  }

  @Test(
    "a dry run says what is wrong and stores nothing; refused rows are written to a file that can be corrected and imported")
  func dryRunAndRejects() throws {
    let site = try RegistrySite()
    let refused = "xx,\(token(2)),\"c,\"\"d\"\"\"\n"
    let text = "platform,token,app_version\napns,\(token(1)),\"a, b\"\r\n\(refused)apns,\(token(3)),é\nfcm,,\n"
    let file = try site.write(text, "devices.csv")
    let badPlatform = #""InvalidParameters: platform: expected apns, fcm or webpush""#
    let noToken = #""InvalidParameters: token: missing""#
    let rejects = site.folder.appendingPathComponent("rejects.csv").path
    for (words, line) in [(["--dry-run"], "2 of 4 rows would be stored, 2 refused"), ([], "2 of 4 rows stored, 2 refused")] {
      let ended = try site.run(["devices", "import", "--rejects", rejects, file] + words)
      #expect(ended.status == 65 && ended.errors.contains(line), "\(ended.errors)")
      #expect(ended.errors.contains("line 3: ") && ended.errors.contains("line 5: ") && ended.errors.contains(rejects))
      #expect(
        try String(contentsOfFile: rejects, encoding: .utf8)
          == "reason,platform,token,app_version\n\(badPlatform),\(refused)\(noToken),fcm,,\n")
      #expect(try site.run(["devices", "export"]).lines.count == (words.isEmpty ? 2 : 0))
    }
    let again = site.folder.appendingPathComponent("again.csv").path
    let corrected = try String(contentsOfFile: rejects, encoding: .utf8).replacing("xx,", with: "apns,")
    #expect(try site.run(["devices", "import", "--rejects", again, try site.write(corrected, "corrected.csv")]).status == 65)
    #expect(
      try String(contentsOfFile: again, encoding: .utf8) == "reason,platform,token,app_version\n\(noToken),fcm,,\n")
    #expect(try site.run(["devices", "export"]).lines.count == 3)
    #expect(try site.run(["devices", "import", "--rejects", "/no/such/file", file]).status == 65)
  }

  @Test("refused lines of NDJSON have their reason too, and a file of them is imported once they are right")
  func rejectsOfObjects() throws {
    let site = try RegistrySite()
    let (rejects, again) = (
      site.folder.appendingPathComponent("r.ndjson").path, site.folder.appendingPathComponent("s.ndjson").path
    )
    let object = #"{"platform":"xx", "token":"\#(token(1))","topics":["a","b"]}"#
    let file = try site.write("\(object)\nno JSON\n", "devices.ndjson")
    #expect(try site.run(["devices", "import", "--rejects", rejects, file]).status == 65)
    let lines = try String(contentsOfFile: rejects, encoding: .utf8)
    let rest = #""token":"\#(token(1))","topics":["a","b"]}"#
    #expect(
      lines == #"{"reason":"InvalidParameters: platform: expected apns, fcm or webpush","platform":"xx",\#(rest)"#
        + "\nno JSON\n")
    #expect(try site.run(["devices", "import", "--rejects", again, rejects]).status == 65)
    #expect(try String(contentsOfFile: again, encoding: .utf8) == lines)
    let corrected = lines.replacing("xx", with: "apns").replacing("no JSON\n", with: "")
    #expect(try site.run(["devices", "import", try site.write(corrected, "corrected.ndjson")]).status == 0)
  }

  @Test("devices are counted by application, platform, kind and state", arguments: Backend.available)
  func count(backend: Backend) throws {
    let site = try RegistrySite(backend)
    #expect(try site.run(["devices", "count"]).output == (backend == .sqlite ? "" : "no devices\n"))
    try site.configure(#"registry: "\#(site.location)","#, apps: [RegistrySite.app, "other"])
    let lines =
      (1...3).map { #"{"app":"\#(RegistrySite.app)","platform":"apns","token":"\#(token($0))"}"# }
      + [
        #"{"app":"other","platform":"fcm","token":"abcdefgh"}"#,
        #"{"app":"other","platform":"apns","token":"aa","kind":"voip"}"#,
      ]
    #expect(try site.run(["devices", "import", "-"], input: Array(lines.joined(separator: "\n").utf8)).status == 0)
    #expect(try site.run(["devices", "unregister", "--app", RegistrySite.app, "--token", token(1)]).status == 0)
    let counted = try site.run(["devices", "count", "--json"]).objects.map { row in
      ["app", "platform", "kind", "state", "devices"].map { "\(row[$0] ?? "")" }.joined(separator: " ")
    }
    #expect(
      counted == [
        "com.example.app apns alert active 2", "com.example.app apns alert gone 1", "other apns voip active 1",
        "other fcm alert active 1",
      ])
    let table = try site.run(["devices", "count", "--app", "other"]).lines
    #expect(
      table == [
        "DEVICES  STATE   KIND   PLATFORM  APP", "      1  active  voip   apns      other",
        "      1  active  alert  fcm       other",
      ])
  }

  @Test("rows of which none says whose they are cost one sentence where several applications are configured")
  func namelessRows() throws {
    let site = try RegistrySite()
    try site.configure("registry: \"\(site.location)\",", apps: [RegistrySite.app, "other"])
    let file = try site.write("platform,token\n" + (0..<100).map { "apns,\(token($0))\n" }.joined(), "devices.csv")
    let ended = try site.run(["devices", "import", file])
    #expect(ended.status == 65 && ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
    #expect(ended.errors.contains("line 1: header line: there is no column app") && ended.errors.contains("--app"))
    #expect(try site.run(["devices", "import", "--app", "other", file]).status == 0)
  }

  @Test("--rejects can't be the file that is imported, by whatever path, and nothing of it is lost")
  func rejectsOfItself() throws {
    let site = try RegistrySite()
    let text = "platform,token\napns,\(token(1))\napns,zz\n"
    let file = try site.write(text, "devices.csv")
    let link = site.folder.appendingPathComponent("link.csv").path
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: file)
    for (rejects, source) in [(file, file), (link, file), (file, link), (site.folder.path + "/./devices.csv", file)] {
      for options in [[], ["--dry-run"]] {
        let ended = try site.run(["devices", "import", "--rejects", rejects, source] + options)
        #expect(ended.status == 64 && ended.errors.contains("is the file that is imported"), "\(ended)")
      }
    }
    #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
  }

  @Test("a key that nobody has seen is revoked", arguments: [">&-", ">/dev/full"])
  func unseenKey(output: String) throws {
    let site = try RegistrySite()
    let child = try ChildProcess(
      [
        "/bin/sh", "-c", #"exec "$1" keys create --rights send --config "$2" "# + output, "sh", Program.path,
        site.configuration,
      ],
      environment: RegistrySite.environment, output: nil)
    #expect(child.wait() == 69 && child.outputSoFar.contains("revoked"), "\(child.outputSoFar)")
    let keys = try site.run(["keys", "list", "--json"]).objects
    #expect(keys.count == 1 && keys[0]["revoked_at"] is String, "\(keys)")
  }

  @Test("an export that nobody reads on ends without a word, and --json says how it is written")
  func readerGone() throws {
    let site = try RegistrySite()
    let file = try site.write(
      "platform,token\n" + (0..<5_000).map { "apns,\(token($0))\n" }.joined(), "devices.csv")
    #expect(try site.run(["devices", "import", file]).status == 0)
    let pipeline = #""$1" devices export --json --config "$2" | head -n 1"#
    let child = try ChildProcess(
      ["/bin/bash", "-c", pipeline, "bash", Program.path, site.configuration],
      environment: RegistrySite.environment, output: try site.write("", "pipeline.log"))
    #expect(child.wait() == 0)
    let output = try String(contentsOfFile: site.folder.appendingPathComponent("pipeline.log").path, encoding: .utf8)
    #expect(output.split(separator: "\n").count == 1 && output.hasPrefix("{"), "\(output)")
    #expect(try site.run(["devices", "export", "--json", "--format", "csv"]).status == 64)
  }

  @Test("a text of SQL is a text, in every field", arguments: Backend.available)
  func injection(backend: Backend) throws {
    let site = try RegistrySite(backend)
    let sql = "'; DROP TABLE devices; --\\\" $1 ?1 %s"
    var words = ["devices", "register", "--platform", "apns", "--token", token(1), "--user", "u1", "--environment", "sandbox"]
    for option in ["installation", "sender", "name", "locale", "time-zone", "app-version"] { words += ["--\(option)", sql] }
    let registration = try site.run(words)
    #expect(registration.status == 0 && registration.lines.first?.hasPrefix("pf1r~") == true, "\(registration.errors)")
    let shown = try #require(try site.run(["devices", "show", "--installation", sql, "--json"]).objects.first)
    for field in ["installation", "sender", "name", "locale", "time_zone", "app_version"] {
      #expect(shown[field] as? String == sql, "\(field)")
    }
    for option in ["token", "environment", "platform", "topics"] {
      var values = ["platform": "apns", "token": token(2)]
      values[option] = option == "topics" ? sql.replacingOccurrences(of: ",", with: "") : sql
      let words = ["devices", "register"] + values.flatMap { ["--\($0)", $1] }
      #expect(try site.run(words).status == 65, "\(option)")
    }
    for option in ["token", "registration"] { #expect(try site.run(["devices", "show", "--\(option)", sql]).status == 64) }
    for option in ["user", "installation"] {
      #expect(try site.run(["devices", "show", "--\(option)", sql + "x"]).status == 65, "\(option)")
    }
    #expect(try site.run(["groups", "create", sql, registration.lines[0]]).status == 0)
    #expect(try site.run(["groups", "show", sql, "--json"]).objects.first?["notification_key_name"] as? String == sql)
    #expect(try site.run(["topics", "subscribe", sql, registration.lines[0]]).status == 65)
    #expect(try site.run(["campaigns", "pause", sql]).status == 65)
    #expect(try site.run(["devices", "export"]).lines.count == 1)
  }

  // MARK: one device

  @Test("a device is registered, shown by each of its names, and unregistered", arguments: Backend.available)
  func oneDevice(backend: Backend) throws {
    let site = try RegistrySite(backend)
    let words = ["--platform", "fcm", "--token", "abc:def", "--installation", "i1", "--user", "u1", "--topics", "news,sport"]
    let registration = try #require(try site.run(["devices", "register"] + words).lines.first)
    for name in [["--token", "fcm:abc:def"], ["--registration", registration], ["--installation", "i1"], ["--user", "u1"]] {
      let shown = try site.run(["devices", "show", "--json"] + name)
      #expect(shown.status == 0 && shown.objects.count == 1)
      #expect(shown.objects.first?["registration"] as? String == registration)
      #expect(shown.objects.first?["topics"] as? [String] == ["news", "sport"])
      #expect(shown.objects.first?["state"] as? String == "active")
    }
    let text = try site.run(["devices", "show", "--user", "u1"])
    #expect(text.output.contains("token         abc:def") && text.output.contains("topics        news, sport"))

    // A new token for the installation: the old registration goes on to mean the device.
    let newer = try site.run(["devices", "register", "--json", "--platform", "fcm", "--token", "new", "--installation", "i1"])
    #expect(newer.objects.first?["registration"] as? String != registration)
    #expect(
      try site.run(["devices", "show", "--registration", registration, "--json"]).objects.first?["token"] as? String == "new")

    #expect(try site.run(["devices", "unregister", "--installation", "i1"]).status == 0)
    #expect(try site.run(["devices", "show", "--token", "fcm:new", "--json"]).objects.first?["state"] as? String == "gone")
    #expect(try site.run(["devices", "show", "--user", "u1"]).status == 65)
  }

  static let subscription =
    #"{"endpoint":"https://push.example/secret","expirationTime":null,"keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}}"#

  @Test("a subscription is registered, found by its endpoint, and shown to people by a name", arguments: Backend.available)
  func subscription(backend: Backend) throws {
    let site = try RegistrySite(backend)
    let endpoint = "https://push.example/secret"
    let words = [
      "--platform", "webpush", "--subscription", Self.subscription, "--user", "u1", "--application-server-key",
      "0102030405060708",
    ]
    let registration = try #require(try site.run(["devices", "register"] + words).lines.first)
    #expect(registration.hasPrefix("pf1r~"))
    let shown = try site.run(["devices", "show", "--json", "--token", endpoint])
    #expect(shown.objects.first?["registration"] as? String == registration)
    #expect(shown.objects.first?["token"] as? String == endpoint)
    let text = try site.run(["devices", "show", "--user", "u1"]).output
    // The first 16 digits of the endpoint's SHA-256.
    #expect(text.contains("subscription  b6a07f706fa3131d") && !text.contains("secret"), "\(text)")
    #expect(try site.run(["topics", "subscribe", "news", endpoint]).status == 0)

    let exported = try site.run(["devices", "export"]).output
    #expect(exported.contains(#""subscription":{"endpoint":"https://push.example/secret","keys":{"p256dh":"#), "\(exported)")
    #expect(exported.contains(#""application_server_key":"0102030405060708""#))
    for format in BulkFormat.allCases {
      let other = try RegistrySite(backend)
      let file = try other.write(try site.run(["devices", "export", "--format", "\(format)"]).output, "d.\(format)")
      #expect(try other.run(["devices", "import", file]).status == 0)
      #expect(try other.run(["devices", "export"]).output == exported)
    }
    #expect(try site.run(["devices", "unregister", "--token", endpoint]).status == 0)
    let list = try site.run(["devices", "list", "--state", "gone"]).output
    #expect(list.contains("b6a07f706fa3131d") && !list.contains("secret"), "\(list)")
  }

  @Test("a token is found whatever it looks like, and unregistered; a list says since when and why")
  func looks() throws {
    let site = try RegistrySite()
    let digits = String(repeating: "a", count: 80)
    for (platform, token) in [("apns", "cdcdcdcd"), ("fcm", digits), ("apns", digits)] {
      #expect(try site.run(["devices", "register", "--platform", platform, "--token", token]).status == 0)
    }
    #expect(try site.run(["devices", "show", "--json", "--token", "cdcdcdcd"]).objects.count == 1)
    #expect(try site.run(["devices", "show", "--json", "--token", digits]).objects.count == 2)
    #expect(try site.run(["devices", "show", "--json", "--token", "fcm:\(digits)"]).objects.count == 1)
    #expect(try site.run(["devices", "list", "--state", "gone"]).errors == "no devices are gone\n")
    let ended = try site.run(["devices", "unregister", "--token", "cdcdcdcd"])
    #expect(ended.status == 0 && ended.errors.contains("1 unregistered"))
    #expect(try site.run(["devices", "show", "--json", "--token", "cdcdcdcd"]).objects.first?["state"] as? String == "gone")
    #expect(try site.run(["devices", "unregister", "--token", "cdcdcdcd"]).errors.contains("0 unregistered: gone already"))
    let list = try site.run(["devices", "list", "--state", "gone"]).lines
    #expect(list.count == 2 && list[0].contains("REGISTRATION") && list[1].hasSuffix("alert  cdcdcdcd"), "\(list)")
  }

  @Test(
    "what can't be done is refused with the reason and its exit status",
    arguments: [
      (["devices"], 64, "name an action: import, export"), (["devices", "drop"], 64, "not one of import, export"),
      (["devices", "show"], 64, "name a device by one of"), (["devices", "show", "--user", "nobody"], 65, "no such device"),
      (["devices", "show", "--token", "1", "--user", "u"], 64, "name a device by one of"),
      (["devices", "register", "--token", "x"], 65, "platform: missing"),
      (["devices", "register", "--platform", "web", "--token", "x"], 65, "platform: expected apns, fcm or webpush"),
      (["devices", "register", "--platform", "webpush", "--token", "x"], 65, "token: not for webpush"),
      (["devices", "register", "--platform", "webpush", "--subscription", "{"], 65, "--subscription: no JSON"),
      (["devices", "register", "--platform", "webpush", "--subscription", "{}"], 65, "subscription.endpoint: missing"),
      (["devices", "register", "--platform", "fcm", "--token", "x", "--app", "other"], 64, "no application \"other\""),
      (["devices", "unregister"], 64, "name a device by one of --token, --registration, --installation"),
      (["devices", "unregister", "--installation", "nobody"], 65, "no such device"),
      (["devices", "unregister", "--token", "cdcd"], 65, "no such device"),
      (["devices", "import", "nothing.csv"], 65, "nothing.csv cannot be read: there is no such file"),
      (["devices", "export", "--format", "xml"], 64, "--format must be csv or ndjson"),
    ] as [([String], Int32, String)])
  func refusals(words: [String], status: Int32, message: String) throws {
    let site = try RegistrySite()
    try site.run(["devices", "register", "--platform", "fcm", "--token", "first"])
    let ended = try site.run(words)
    #expect(ended.status == status && ended.errors.contains(message), "\(ended)")
    #expect(ended.output.isEmpty)
  }

  // MARK: the registry itself

  @Test(
    "every command says what is wrong with the registry setting, and makes none only to read it",
    arguments: [
      ["devices", "export"], ["devices", "show", "--user", "u"], ["devices", "import", "-"], ["topics", "list"],
      ["groups", "show", "g"], ["campaigns"], ["campaigns", "resume", "x"],
    ])
  func registrySetting(words: [String]) throws {
    let site = try RegistrySite()
    func outcome(_ setting: String) throws -> (Int32, String) {
      try site.configure(setting)
      let ended = try site.run(words)
      return (ended.status, ended.errors)
    }
    let missing = try outcome("")
    #expect(missing.0 == 78 && missing.1.contains("registry is missing"))
    let unknown = try outcome(#"registry: "mysql://h/d","#)
    #expect(unknown.0 == 78 && unknown.1.contains("registry") && unknown.1.contains("postgresql://"))
    try site.write("no database", "text.db")
    #expect(try outcome(#"registry: "sqlite:text.db","#).0 == 78)
    let down = try outcome(#"registry: "postgresql://user:secret@127.0.0.1:1/none","#)
    #expect(down.0 == 69 && !down.1.contains("secret"), "\(down.1)")
    guard words != ["devices", "import", "-"] else { return }
    #expect(try outcome(#"registry: "sqlite:absent.db","#).0 == 78)
    #expect(!FileManager.default.fileExists(atPath: site.folder.path + "/absent.db"))
  }
}
