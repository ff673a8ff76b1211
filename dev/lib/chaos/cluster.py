"""A private cluster of three RabbitMQ nodes: names, home, cookie, data, logs, ports and port mapper."""

import os
import subprocess
import time

from process import Failure, Process, free_ports, wait_for

# Seconds of silence after which a node considers another one as dead.
TICK = 8

# Seconds after which an unconfirmed dead letter is sent again. RabbitMQ's default of three minutes is the whole time for a round to come
# to rest.
DEAD_LETTER_PATIENCE = 15


class Node:
    """One RabbitMQ. Its start script replaces itself with the node, so that a kill hits the node."""

    def __init__(self, number, cluster):
        self.number, self.cluster = number, cluster
        self.name = f"pushfleet{number}-{os.getpid()}@localhost"
        self.port, self.distribution_port = free_ports(2)
        self.home = cluster.folder / f"broker{number}"
        # True from a kill, freeze or isolation until the node is part of the cluster again.
        self.is_away = False
        self.process = Process(f"broker{number}", ["/usr/lib/rabbitmq/bin/rabbitmq-server"], cluster.folder, self.environment)

    @property
    def environment(self):
        return {
            "PATH": "/usr/lib/rabbitmq/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": str(self.home),
            "ERL_EPMD_PORT": str(self.cluster.mapper_port), "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_CRASH_DUMP": "/dev/null",
            "RABBITMQ_CONF_ENV_FILE": f"{self.home}/none", "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_DIST_PORT": str(self.distribution_port), "RABBITMQ_CONFIG_FILE": f"{self.home}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.home}/enabled_plugins", "RABBITMQ_MNESIA_BASE": f"{self.home}/data",
            "RABBITMQ_LOG_BASE": f"{self.home}/log", "RABBITMQ_LOGS": f"{self.home}/broker.log", "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
            # Waiting threads don't spin, because there are few cores.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                f"-kernel inet_dist_use_interface {{127,0,0,1}} -kernel net_ticktime {TICK} +sbwt none +sbwtdcpu none +sbwtdio none "
                f"-rabbit dead_letter_worker_publisher_confirm_timeout {DEAD_LETTER_PATIENCE * 1000}",
            "RUNNING_UNDER_SYSTEMD": "true"}

    def prepare(self, cookie):
        self.home.mkdir()
        path = self.home / ".erlang.cookie"
        path.write_text(cookie)
        path.chmod(0o400)
        (self.home / "enabled_plugins").write_text("[rabbitmq_consistent_hash_exchange].\n")
        lines = [f"listeners.tcp.1 = 127.0.0.1:{self.port}", "log.file.level = info", "disk_free_limit.absolute = 50MB",
                 "cluster_partition_handling = pause_minority", "cluster_formation.peer_discovery_backend = classic_config",
                 # The first node has no peers to wait for. The others join it.
                 f"cluster_formation.classic_config.nodes.1 = {self.cluster.nodes[0].name}",
                 # Small, so that the round includes snapshots of the log.
                 "raft.wal_max_size_bytes = 16777216"]
        (self.home / "rabbitmq.conf").write_text("\n".join(lines) + "\n")

    @property
    def has_started(self):
        """True if the banner of the latest start says that the node accepts connections."""
        return b"completed with" in self.process.log.read_bytes()[self.log_begin:]

    def start(self):
        self.log_begin = self.process.log.stat().st_size if self.process.log.exists() else 0
        self.process.start()

    def begin_control(self, *arguments):
        """Starts `rabbitmqctl`, which needs about two seconds of CPU."""
        return subprocess.Popen(["/usr/lib/rabbitmq/bin/rabbitmqctl", "--quiet", "--timeout", "60", *arguments], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment)

    @property
    def is_paused(self):
        """True if the node has stopped serving clients, because it sees a partition that would leave it in a minority."""
        return self.control("eval", "rabbit:is_running().").strip() == "false"

    def control(self, *arguments):
        command = self.begin_control(*arguments)
        output, _ = command.communicate()
        if command.returncode != 0:
            raise Failure(f"rabbitmqctl {' '.join(arguments)} on broker {self.number}: {output}")
        return output


class Recovery:
    """Brings a killed, frozen or isolated node back, until it runs and sees both others. Before that, no other node may be disturbed.
    `poll` returns true when it is done; it never waits."""

    # The smallest number of nodes that any node sees. A paused node would answer from a file, and a node that was frozen may not
    # know yet that the others treat it as dead.
    question = ("lists:min([case rpc:call(N, rabbit, is_running, []) of true -> "
                "length(rpc:call(N, rabbit_mnesia, cluster_nodes, [running])); _ -> 0 end "
                "|| N <- rabbit_mnesia:cluster_nodes(all)]).")

    # Seconds before an operator restarts the node, and before the round is given up.
    patience, limit = 15, 240

    def __init__(self, node):
        self.node, self.command, self.restarts = node, None, 0
        self.begun = self.waiting_since = time.monotonic()

    def poll(self):
        now = time.monotonic()
        if now - self.begun > self.limit:
            raise Failure(f"broker {self.node.number} did not find its cluster again; its log: {self.node.home}/broker.log")
        if not self.node.process.is_running or not self.node.has_started:
            self.waiting_since = now
            return False
        if self.command is None:
            self.command = self.node.begin_control("eval", self.question)
        if self.command.poll() is None:
            return False
        seen, self.command = self.command.communicate()[0].strip(), None
        if seen == str(len(self.node.cluster.nodes)):
            return True
        if now - self.waiting_since > self.patience:
            # A frozen node may see a partition that ended before it paused. It then stays outside until an operator restarts it
            # (rabbitmq.com/docs/partitions, "Suspend and Resume").
            self.restarts += 1
            self.node.process.kill()
            self.node.start()
        return False


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.mapper_port, = free_ports(1)
        self.mapper = Process("epmd", ["/usr/bin/epmd", "-port", self.mapper_port, "-address", "127.0.0.1"], folder)
        self.nodes = [Node(number, self) for number in (1, 2, 3)]
        self.alarmed = []

    def start(self):
        """Starts the first node, then the others, which join it."""
        cookie = os.urandom(12).hex()
        self.mapper.start()
        for node in self.nodes:
            node.prepare(cookie)
        for node in self.nodes:
            node.start()
            if node.number == 1:
                self.wait_for(node)
        self.wait()

    def wait_for(self, node, seconds=180):
        wait_for(lambda: node.has_started, node.process, seconds, "start")

    def wait(self, seconds=180):
        """Waits until every node has started."""
        for node in self.nodes:
            self.wait_for(node, seconds)

    def node(self, number):
        return self.nodes[number - 1]

    def isolate(self, node):
        """Isolates a node from its peers in both directions: another cookie prevents distribution connections.

        The peers lose the node one after the other. If the second peer still sees it when the first one asks, the first one pauses too.
        """
        peers = ",".join(f"'{other.name}'" for other in self.nodes if other is not node)
        node.control("eval", f"Ns = [{peers}], [erlang:set_cookie(N, elsewhere) || N <- Ns], [erlang:disconnect_node(N) || N <- Ns].")

    def rejoin(self, node):
        peers = ",".join(f"'{other.name}'" for other in self.nodes if other is not node)
        node.control("eval", f"[erlang:set_cookie(N, erlang:get_cookie()) || N <- [{peers}]].")

    def raise_alarm(self):
        """Blocks publishing in the whole cluster, with an alarm on one available node. A cluster whose nodes are all paused
        blocks publishing without it."""
        for node in [node for node in self.nodes if not node.is_away]:
            if self.set_watermark(node, "0.0000001"):
                self.alarmed.append(node)
                return

    def clear_alarm(self):
        """Clears alarms of available nodes. Call it again when others are back. A paused node forgets its alarm."""
        for node in [node for node in self.alarmed if not node.is_away]:
            self.set_watermark(node, "0.4")
            self.alarmed.remove(node)

    @staticmethod
    def set_watermark(node, share):
        """Returns false if the node is paused."""
        try:
            node.control("set_vm_memory_high_watermark", share)
        except Failure:
            if node.is_paused:
                return False
            # It may have come back meanwhile.
            node.control("set_vm_memory_high_watermark", share)
        return True

    def move_leader(self, queue):
        """Moves the queue's leader to another node. The new leader checks all consumers and takes back messages of dead ones."""
        self.nodes[0].control(
            "eval", f"{{ok, Ms, {{Q, L}}}} = ra:members({{'%2F_{queue}', node()}}), [O | _] = [N || {{_, N}} <- Ms, N =/= L], "
                    "ok = ra:transfer_leadership({Q, L}, {Q, O}).")

    def depths(self):
        """Number of messages of each queue, ready and unacknowledged."""
        lines = self.nodes[0].control("list_queues", "name", "messages", "--no-table-headers").splitlines()
        return {name: int(count) for name, count in (line.split("\t") for line in lines if "\t" in line)}
