import Glibc

/// What this process has used so far.
public struct ProcessUsage: Sendable {
  /// Seconds of CPU, user and system, of all threads.
  public var cpuSeconds: Double
  /// Resident memory now, bytes; 0 where /proc is not mounted.
  public var residentBytes: Int
  /// The largest it ever was, bytes.
  public var peakResidentBytes: Int
  /// Open file descriptors' limit (soft).
  public var descriptorLimit: Int

  public static func current() -> ProcessUsage {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return ProcessUsage(
      cpuSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
      residentBytes: residentPages() * sysconf(Int32(_SC_PAGESIZE)),
      peakResidentBytes: usage.ru_maxrss * 1024, descriptorLimit: Int(clamping: limit.rlim_cur))
  }

  /// Nothing more can be opened at this moment.
  public static var isOutOfDescriptors: Bool {
    let raw = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if raw >= 0 { close(raw) }
    return raw < 0
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

  /// The second number of /proc/self/statm (proc(5)).
  private static func residentPages() -> Int {
    guard let text = try? FileContents.read("/proc/self/statm") else { return 0 }
    let fields = text.split(separator: 0x20)
    return fields.count > 1 ? Int(String(decoding: fields[1], as: UTF8.self)) ?? 0 : 0
  }
}
