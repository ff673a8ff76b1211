import Reactor

extension MetricsFormat {
  /// The program and its process, as workers and gateways show them alike.
  package mutating func process(_ usage: ProcessUsage, version: String) {
    gauges("pushfleet_build_info", "The program.", [([("version", version)], 1)])
    family("process_cpu_seconds_total", "counter", "CPU time, user and system.", [([], "\(usage.cpuSeconds)")])
    gauge("process_resident_memory_bytes", usage.residentBytes, "Resident memory.")
    gauge("process_start_time_seconds", usage.startTime, "When the process began, in unix time.")
    gauge("process_open_fds", usage.openDescriptors, "Open file descriptors.")
    gauge("process_max_fds", usage.descriptorLimit, "File descriptors that may be open.")
  }
}
