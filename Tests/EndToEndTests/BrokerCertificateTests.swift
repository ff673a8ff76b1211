import Foundation
import TestSupport
import Testing

/// RabbitMQ's plugin `rabbitmq_auth_mechanism_ssl` reads the user's name in the client certificate.
@Suite("A worker that proves its user by a certificate", .blocking)
struct BrokerCertificateTests {
  @Test("delivers without a password; the broker refuses a user that it doesn't know, and the doctor says so")
  func external() throws {
    let certificates = try TestCertificates.make()
    let broker = try Broker(
      certificates: (certificates.authority, certificates.server, certificates.serverKey), provesUsers: true)
    defer { broker.stop() }
    let site = try Site(broker: broker)
    try site.startSimulator()
    try site.write(
      """
      { broker: "amqps://127.0.0.1:\(broker.tlsPort)", brokerCertificate: "\(certificates.clientCombined)", prefix: "\(site.prefix)",
        ca: "\(certificates.authority)",
        apps: { "\(Site.app)": { apns: { key: "\(certificates.p8)", keyID: "ABC123DEFG", teamID: "DEF123GHIJ",
          endpoint: "https://127.0.0.1:\(site.port)", ca: "\(certificates.authority)" } } } }
      """, to: "pushfleet.json5")
    let refused = try site.run(["topology", "--config", site.file("pushfleet.json5")])
    #expect(refused.status != 0 && refused.output.contains("authentication mechanism EXTERNAL"), "\(refused.output)")
    let doctor = try site.run(["doctor", "--config", site.file("pushfleet.json5")])
    #expect(doctor.status != 0 && doctor.output.contains("rabbitmqctl list_users"), "\(doctor.output)")

    let user = "Apple Push Services: com.example.app"
    try broker.addUser(user, password: "unused")
    try site.declareTopology()
    try site.publish([(["to": "apns:\(token(1))", "data": ["m": "m"]], ["message_id": "m"])])
    let worker = try site.startWorker()
    #expect(try eventually { try site.deliveries(of: "m").count == 1 })
    let users = try broker.control("list_connections", "user", "auth_mechanism").split(separator: "\n").filter {
      $0.contains(user)
    }
    #expect(!users.isEmpty && users.allSatisfy { $0.contains("EXTERNAL") }, "\(users)")
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
