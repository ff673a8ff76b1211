import Reactor
import Wire

/// Writes Prometheus' text format 0.0.4.
package struct MetricsFormat {
  package private(set) var text = ""

  package mutating func counter(_ name: String, _ value: Int, _ help: String) {
    family(name, "counter", help, [([], "\(value)")])
  }
  package mutating func gauge(_ name: String, _ value: Int, _ help: String) { family(name, "gauge", help, [([], "\(value)")]) }
  package mutating func gauge(_ name: String, _ value: Double, _ help: String) {
    family(name, "gauge", help, [([], "\(value)")])
  }

  package init() {}

  package typealias Labels = [(name: String, value: String)]

  package mutating func counters(_ name: String, _ help: String, _ samples: [(labels: Labels, value: Int)]) {
    family(name, "counter", help, samples.map { ($0.labels, "\($0.value)") })
  }

  package mutating func gauges(_ name: String, _ help: String, _ samples: [(labels: Labels, value: Int)]) {
    family(name, "gauge", help, samples.map { ($0.labels, "\($0.value)") })
  }

  package mutating func histograms(_ name: String, _ help: String, _ samples: [(labels: Labels, value: Histogram)]) {
    begin(name, "histogram", help)
    for (labels, histogram) in samples {
      var sum = 0
      for (index, count) in histogram.counts.enumerated() {
        sum += count
        let bound = index < histogram.bounds.count ? Self.number(histogram.bounds[index]) : "+Inf"
        add("\(name)_bucket", labels + [("le", bound)], "\(sum)")
      }
      add("\(name)_sum", labels, "\(histogram.sum)")
      add("\(name)_count", labels, "\(sum)")
    }
  }

  package mutating func family(_ name: String, _ kind: String, _ help: String, _ samples: [(labels: Labels, value: String)]) {
    begin(name, kind, help)
    for sample in samples { add(name, sample.labels, sample.value) }
  }

  private mutating func begin(_ name: String, _ kind: String, _ help: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
  }

  private mutating func add(_ name: String, _ labels: Labels, _ value: String) {
    text += name
    for (index, label) in labels.enumerated() {
      text += index == 0 ? "{" : ","
      text += "\(label.name)=\"\(Self.escaped(label.value))\""
    }
    text += labels.isEmpty ? " \(value)\n" : "} \(value)\n"
  }

  private static func number(_ bound: Double) -> String { bound == bound.rounded() ? "\(Int(bound))" : "\(bound)" }

  /// Escapes characters that would end the value or the line.
  private static func escaped(_ value: String) -> String {
    guard value.utf8.contains(where: { $0 == 0x5C || $0 == 0x22 || $0 == 0x0A }) else { return value }
    return value.replacing("\\", with: #"\\"#).replacing("\"", with: #"\""#).replacing("\n", with: #"\n"#)
  }

  /// The program's version and process metrics, the same for workers and gateways.
  package mutating func process(_ usage: ProcessUsage, version: String) {
    gauges("pushfleet_build_info", "The version of the running program.", [([("version", version)], 1)])
    family("process_cpu_seconds_total", "counter", "CPU time, user and system.", [([], "\(usage.cpuSeconds)")])
    gauge("process_resident_memory_bytes", usage.residentBytes, "Resident memory.")
    gauge("process_start_time_seconds", usage.startTime, "Start time of the process, in Unix time.")
    gauge("process_open_fds", usage.openDescriptors, "Open file descriptors.")
    gauge("process_max_fds", usage.descriptorLimit, "Maximum number of open file descriptors.")
  }
}
